"""RabbitMQ as a broker: quorum queues, publisher confirms, names of a deployment's own."""

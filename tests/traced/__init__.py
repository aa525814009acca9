"""Which source files a request and an occurrence enter: `ways.traced` goes their way in a new process."""

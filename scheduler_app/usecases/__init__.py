"""The use cases: each operation of people, programs and beats."""

"""What annotation tools write out, one module a tool."""

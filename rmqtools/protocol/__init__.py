"""The remoting protocol as bytes: frames, commands, headers, bodies, stored messages. No I/O, no clock."""

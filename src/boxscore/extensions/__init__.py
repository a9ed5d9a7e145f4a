"""Extensions: each adds to the core at its sockets, and the core imports none of them."""

"""A staging kit: four machines of a group, of which one gets all messages for a while."""

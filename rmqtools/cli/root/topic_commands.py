"""The commands of ``rmqtools topic``, from the files that have them."""

from rmqtools.cli import topic, topic_producers

app = topic.app
app.command("producers")(topic_producers.producers)

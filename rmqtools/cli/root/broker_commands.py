"""The commands of ``rmqtools broker``, from the files that have them."""

from rmqtools.cli import broker, broker_drain

app = broker.app
app.command("drain")(broker_drain.drain)
app.command("undrain")(broker_drain.undrain)

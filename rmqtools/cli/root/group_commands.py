"""The commands of ``rmqtools group``, from the files that have them."""

from rmqtools.cli import group, group_offsets, group_settings, group_watch

app = group.app
app.command("reset")(group_offsets.reset)
app.command("skip")(group_offsets.skip)
app.command("watch")(group_watch.watch)
app.command("create")(group_settings.create)
app.command("alter")(group_settings.alter)

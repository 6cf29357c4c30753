"""The commands of ``rmqtools cluster``, from the files that have them."""

from rmqtools.cli import cluster, cluster_servers

app = cluster.app
app.command("stop")(cluster_servers.stop)
app.command("start")(cluster_servers.start)

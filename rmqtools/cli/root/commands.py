"""The names of all commands, where they are, and what the list of commands says of them."""

from rmqtools.cli.root.lazy_group import LazyCommand

COMMANDS = {
    "produce": LazyCommand(
        "rmqtools.cli.produce",
        "produce",
        "Send messages, and print how many are stored, how fast, and how many of unknown outcome.",
    ),
    "consume": LazyCommand(
        "rmqtools.cli.consume",
        "consume",
        "Print a topic's messages: those that are there now, or all from now on with --follow.",
    ),
    "health": LazyCommand(
        "rmqtools.cli.broker",
        "health",
        "Print one line, for probes: whether all name servers and all brokers that they know are well.",
    ),
    "allocate": LazyCommand(
        "rmqtools.cli.allocate",
        "allocate",
        "Show which member would own each queue of a topic, beside its owner now. Changes nothing.",
    ),
    "top": LazyCommand(
        "rmqtools.cli.top.command",
        "top",
        "Watch groups, topics and brokers: rates, lag, and which member owns which queue.",
    ),
    "topic": LazyCommand(
        "rmqtools.cli.root.topic_commands", "app", "Topics: list, describe, create, alter, delete; producers."
    ),
    "message": LazyCommand(
        "rmqtools.cli.message", "app", "Single messages: find them, and the groups that consumed them."
    ),
    "broker": LazyCommand(
        "rmqtools.cli.root.broker_commands", "app", "Brokers: their state and their settings."
    ),
    "cluster": LazyCommand(
        "rmqtools.cli.root.cluster_commands",
        "app",
        "A real RocketMQ cluster on this machine: name server and brokers from the public jars.",
    ),
    "group": LazyCommand(
        "rmqtools.cli.root.group_commands",
        "app",
        "Consumer groups: members, owners of queues, problems, offsets, settings.",
    ),
    "pin": LazyCommand(
        "rmqtools.cli.pin",
        "app",
        "Give all queues of a group to some machines for a while, e.g. to one staging machine. "
        "Works for groups whose members share by the strategy PINS.",
    ),
    "dlq": LazyCommand(
        "rmqtools.cli.dlq",
        "app",
        "Messages of a group that failed too often (its dead letters), or wait for their next try.",
    ),
    "mirror": LazyCommand(
        "rmqtools.cli.mirror",
        "app",
        "Copies of topics in another cluster, or in other topics: each message once and in order.",
    ),
    "exporter": LazyCommand(
        "rmqtools.cli.exporter.command",
        "exporter",
        "Serve metrics for Prometheus: lag, age, findings and dead letters of all groups, and of servers.",
    ),
    "export": LazyCommand(
        "rmqtools.cli.compare",
        "export",
        "Write all topics, groups and masters with their settings as YAML: queues, permissions, attributes.",
    ),
    "diff": LazyCommand(
        "rmqtools.cli.compare",
        "diff",
        "Compare topics, groups and brokers of two clusters, or a file of rmqtools export and a cluster.",
    ),
    "profile": LazyCommand(
        "rmqtools.cli.profile",
        "app",
        "Named settings in $RMQTOOLS_CONFIG, else ~/.config/rmqtools/config.toml. Options and the "
        "environment take precedence over them. RMQTOOLS_PROFILE chooses one for a single command.",
    ),
    "spark": LazyCommand("rmqtools.cli.spark", "app", "The data source for Spark."),
}

"""A Spark application that reads and writes with secrets; tests search what it leaves for them.

python -m tests.integration.secretive_spark NAME_SERVER KEY_FILE EVENT_LOG_FOLDER
"""

import sys
import urllib.request
from pathlib import Path

from pyspark.sql import SparkSession


def main(name_server: str, key_file: str, events: str) -> None:
    """Write, read, explain, fail; print what the UI's pages say."""
    key, token, password = Path(key_file).read_text().split()
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events, "spark.ui.enabled": "true"}
    builder = SparkSession.builder.master("local[1]").config("spark.ui.port", "0")
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("DEBUG")
    options = {"nameServer": name_server, "topic": "t", "accessKey": "alice", "secretKey": key}
    options |= {"rocketmq.securityToken": token}
    frame = spark.createDataFrame([("a",)], "body string").coalesce(1)
    frame.write.format("rocketmq").options(**options).mode("append").save()
    read = spark.read.format("rocketmq").options(**options).load()
    print(read, read.count())
    read.explain(extended=True)
    for wrong in ({"tls.keyPassword": password}, {"secretKeyy": key}, {"topic": "no-such-topic"}):
        try:
            spark.read.format("rocketmq").options(**(options | wrong)).load().collect()
        except Exception as error:  # noqa: BLE001  Spark's many classes
            print(error)
    url, application = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    for page in ("sql?details=true&planDescription=true", "environment", "jobs", "stages?details=true"):
        with urllib.request.urlopen(f"{url}/api/v1/applications/{application}/{page}") as answer:
            print(page, answer.read().decode())
    spark.stop()
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])

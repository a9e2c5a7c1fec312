"""What the job says when Spark itself gives up."""

from spark.job import _spark_failure

TRACE = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler.failJob(DAGScheduler.scala:2840)
Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to read s3cret of topics: [items]
"""


def test_a_read_that_spark_cannot_make_is_told_in_one_line_by_its_cause() -> None:
    said = _spark_failure(RuntimeError(TRACE), ["s3cret"])
    assert "TopicAuthorizationException" in said
    assert "\n" not in said
    assert "DAGScheduler" not in said


def test_a_secret_in_a_trace_is_hidden() -> None:
    assert "s3cret" not in _spark_failure(RuntimeError(TRACE), ["s3cret"])


def test_an_error_without_words_is_named_by_its_kind() -> None:
    assert "RuntimeError" in _spark_failure(RuntimeError(), [])

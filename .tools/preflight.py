"""Compares what the account permits with what a deployment's parameters take, before the first deploy. It only reads. The
arguments are those of parameters.py. Run by the Python of the SAM CLI's own environment.
"""

import sys

import boto3
import botocore.exceptions
import parameters

FREE = 100  # concurrent executions that AWS demands to be kept for no function
SHARDS = 4  # of a new table's stream
NEW_TABLE = {"Read": 12000, "Write": 4000}  # units per second that a new table takes at once


def main():
    values = parameters.defaults() | parameters.chosen(*sys.argv[1:])
    try:
        missing = [line for check in (executions, units, log_role) for line in check(values)]
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as fault:
        sys.exit(f"AWS cannot be asked: {fault}\nSet credentials (AWS_PROFILE) and a region (AWS_REGION).")
    if missing:
        sys.exit("\n".join(f"missing: {line}" for line in missing))
    print("Nothing is missing.")


def executions(values):
    """Shows, and yields what is missing of Lambda's concurrent executions."""
    limits = boto3.client("lambda").get_account_settings()["AccountLimit"]
    quota = limits["ConcurrentExecutions"]
    kept = sum(int(values[f"{name}Concurrency"]) for name in ("Authorizer", "Developers", "Webhooks", "Api"))
    queues = sum(int(values[f"{name}Concurrency"])
                 for name in ("Records", "Imports", "Deliveries", "SlowDeliveries", "IndexJobs"))
    stream = SHARDS * (1 + int(values["DispatcherParallelization"]))
    taken = kept + max(FREE, queues + stream)
    print(f"Lambda: {quota} concurrent executions, {limits['UnreservedConcurrentExecutions']} now kept for no function. This "
          f"deployment takes {taken}: keeps {kept}, and up to {queues} for queues and {stream} for a new table's stream.")
    if quota < taken:
        yield f"{taken - quota} concurrent executions: raise the quota L-B99A9384, or lower the ...Concurrency parameters"
    if quota != int(values["AccountConcurrency"]):
        yield f"AccountConcurrency={quota}: the alarm on concurrent executions goes by it"


def units(values):
    """Shows, and yields what is missing of a table's units."""
    limits = boto3.client("dynamodb").describe_limits()
    for kind, new in NEW_TABLE.items():
        quota = limits[f"TableMax{kind}CapacityUnits"]
        taken = max(new, int(values[f"Warm{kind}Units"]))
        print(f"DynamoDB: {quota} {kind.lower()} units per second of a table. This deployment takes {taken} at once.")
        if quota < taken:
            yield f"{taken - quota} {kind.lower()} units per second: raise the quota of a table's throughput"


def log_role(values):
    """Shows, and yields what is missing of API Gateway's role for logs."""
    role = boto3.client("apigateway").get_account().get("cloudwatchRoleArn")
    print(f"API Gateway: {role or 'no role'} for logs. This deployment has AccessLogs={values['AccessLogs']}.")
    if values["AccessLogs"] == "without-role" and not role:
        yield "AccessLogs=with-role, which sets the role for the account and region"
    if values["AccessLogs"] == "with-role" and role:
        yield f"AccessLogs=without-role: with-role would replace {role}"


if __name__ == "__main__":
    main()

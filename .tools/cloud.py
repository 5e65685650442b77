"""Deploys the service onto MiniStack, an emulator of AWS that enforces IAM per role, for make test-cloud: `deploy`
makes or updates the stacks of state and service with the production profile and prints the outputs of both as JSON,
`delete` removes both, `bus` makes an event bus.
AWS_ENDPOINT_URL names the emulator. Run by the Python of the SAM CLI's own environment, from the root of the repository.

What is deployed are copies of the templates. CHANGES lists all that differs in them, and COMPLETIONS what the emulator
leaves out of the API and gets through API Gateway's own operations; each with its reason. Of the production profile the
emulator makes the alarms and the web ACL; it ignores kept concurrency, access logs and gradual deployment.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
import urllib.parse

import boto3
from parameters import chosen
from samcli.yamlhelper import yaml_dump, yaml_parse

STATE = "commerce-state"
STACK = "commerce"
BUCKET = "commerce-artifacts"
COPIES = pathlib.Path(".build/cloud")
ANY = "x-amazon-apigateway-any-method"


def main():
    parser = argparse.ArgumentParser(description="the service on MiniStack")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("deploy").add_argument("parameters", nargs="*", metavar="Key=Value")
    commands.add_parser("delete")
    commands.add_parser("bus").add_argument("name")
    options = parser.parse_args()
    if options.command == "bus":
        boto3.client("events").create_event_bus(Name=options.name)
        return
    if options.command == "delete":
        sam("delete", STACK, "--no-prompts")
        sam("delete", STATE, "--no-prompts")
        return
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    architecture = {"amd64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    profile = [f"{name}={value}" for name, value in chosen("production", *options.parameters).items()]
    _, state = deployed(STATE, "pkg/app/state/state.yaml", *profile)
    given = [f"{name}={value}" for name, value in state.items()]
    template, service = deployed(STACK, "template.yaml", *given, f"Architecture={architecture}", f"Release={int(time.time())}", *profile)
    complete(template, service)
    print(json.dumps(state | service))


def deployed(stack, file, *parameters):
    """Deploys a copy of the template, and returns it and the stack's outputs."""
    template = changed(yaml_parse(pathlib.Path(file).read_text()))
    copy = COPIES / f"{stack}.yaml"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(yaml_dump(template))
    sam(
        "deploy", stack, "-t", str(copy), "--s3-bucket", BUCKET, "--capabilities", "CAPABILITY_IAM", "--no-progressbar",
        "--no-confirm-changeset", "--no-fail-on-empty-changeset", "--parameter-overrides", *parameters,
    )
    outputs = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["Outputs"]
    return template, {output["OutputKey"]: output["OutputValue"] for output in outputs}


def sam(command, stack, *arguments):
    done = subprocess.run(
        [str(pathlib.Path(sys.executable).parent / "sam"), command, "--stack-name", stack, *arguments],
        env=os.environ | {"SAM_CLI_TELEMETRY": "0"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    if done.returncode:
        sys.exit(f"sam {command} of {stack} failed:\n{done.stdout}")


def changed(template):
    """Returns a template as the emulator takes it."""
    for change in CHANGES:
        change(template)
    return template


def absolute_code(template):
    """The copy lies in another folder than dist."""
    for properties in of_type(template, "AWS::Serverless::Function"):
        properties["CodeUri"] = str(pathlib.Path(properties["CodeUri"]).absolute())


def named_callers(template):
    """The test records which function makes which call: the SDK puts this name into its User-Agent."""
    for properties in of_type(template, "AWS::Serverless::Function"):
        variables = properties.setdefault("Environment", {}).setdefault("Variables", {})
        variables["AWS_SDK_UA_APP_ID"] = pathlib.Path(properties["CodeUri"]).name


def refused_resources(template):
    """The emulator refuses alarms on metric math, and puts no web ACL before an API."""
    resources = template["Resources"]
    for name, resource in list(resources.items()):
        math = resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in resource["Properties"]
        if math or resource["Type"] == "AWS::WAFv2::WebACLAssociation":
            del resources[name]


def plain_concurrency(template):
    """The emulator takes no reference to a parameter as MaximumConcurrency."""
    for properties in of_type(template, "AWS::Lambda::EventSourceMapping"):
        scaling = properties.get("ScalingConfig", {})
        if isinstance(scaling.get("MaximumConcurrency"), dict):
            scaling["MaximumConcurrency"] = template["Parameters"][scaling["MaximumConcurrency"]["Ref"]]["Default"]


def secrets_by_arn(template):
    """The emulator resolves the Ref of a secret to its name; in AWS it is the ARN, as Id is in both."""
    secrets = {n for n, r in template["Resources"].items() if r["Type"] == "AWS::SecretsManager::Secret"}

    def replaced(node):
        if isinstance(node, dict):
            if len(node) == 1 and node.get("Ref") in secrets:
                return {"Fn::GetAtt": [node["Ref"], "Id"]}
            return {key: replaced(child) for key, child in node.items()}
        return [replaced(child) for child in node] if isinstance(node, list) else node

    template["Outputs"] = replaced(template["Outputs"])


def own_action_names(template):
    """The emulator checks batches under the names of their operations, which AWS does not know, and gives a batch of
    PartiQL no resource. AWS checks sqs:SendMessage, sqs:ChangeMessageVisibility and dynamodb:PartiQLInsert."""
    names = {
        "sqs:SendMessage": "sqs:SendMessageBatch", "sqs:ChangeMessageVisibility": "sqs:ChangeMessageVisibilityBatch",
    }
    for properties in of_type(template, "AWS::Serverless::Function"):
        statements = properties.get("Policies", [{"Statement": []}])[0]["Statement"]  # the portal has no permission
        for statement in statements:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            statement["Action"] = actions + [names[action] for action in actions if action in names]
        if any("dynamodb:PartiQLInsert" in statement["Action"] for statement in statements):
            statements.append({"Effect": "Allow", "Action": "dynamodb:BatchExecuteStatement", "Resource": "*"})


def unescaped_media_types(template):
    """The emulator does not decode the JSON Pointer that API Gateway takes for */*."""
    for properties in of_type(template, "AWS::Serverless::Api"):
        properties["BinaryMediaTypes"] = ["*/*"]


# All that the copies have otherwise than the templates.
CHANGES = [
    named_callers, absolute_code, refused_resources, plain_concurrency, secrets_by_arn, own_action_names, unescaped_media_types,
]


def of_type(template, kind):
    return [r["Properties"] for r in template["Resources"].values() if r["Type"] == kind]


def complete(template, outputs):
    """Gives the API what the emulator leaves out of an imported document."""
    api = urllib.parse.urlsplit(outputs["ApiUrl"]).hostname.partition(".")[0]
    properties = template["Resources"]["Api"]["Properties"]
    gateway = boto3.client("apigateway")
    for completion in COMPLETIONS:
        completion(gateway, api, properties)
    gateway.create_deployment(restApiId=api, stageName=outputs["ApiUrl"].rpartition("/")[2])


def any_methods(gateway, api, properties):
    """It ignores the any-method of a path."""
    found = {r["path"]: r for r in gateway.get_resources(restApiId=api, limit=500)["items"]}
    uris = {}  # of functions, by the path's declared methods
    paths = properties["DefinitionBody"]["paths"]
    for path, methods in paths.items():
        for method in set(methods) - {ANY}:
            integration = gateway.get_integration(
                restApiId=api, resourceId=found[path]["id"], httpMethod=method.upper())
            uris[uri_of(methods[method])] = integration["uri"]
            break
    for path, methods in paths.items():
        where = {"restApiId": api, "resourceId": found[path]["id"], "httpMethod": "ANY"}
        gateway.put_method(**where, authorizationType="NONE")
        gateway.put_integration(**where, type="AWS_PROXY", integrationHttpMethod="POST", uri=uris[uri_of(methods[ANY])])


def uri_of(method):
    return json.dumps(method["x-amazon-apigateway-integration"]["uri"])


def gateway_responses(gateway, api, properties):
    """It ignores the document's gateway responses. Headers that go by a condition are those of AllowedOrigins, which the
    test does not set."""
    for kind, response in properties["GatewayResponses"].items():
        headers = response.get("ResponseParameters", {}).get("Headers", {})
        gateway.put_gateway_response(
            restApiId=api, responseType=kind, statusCode=str(response["StatusCode"]),
            responseParameters={f"gatewayresponse.header.{name}": value for name, value in headers.items()
                                if isinstance(value, str)},
            responseTemplates=response["ResponseTemplates"],
        )


# All that the API gets beside the template.
COMPLETIONS = [any_methods, gateway_responses]


if __name__ == "__main__":
    main()

"""Prints the parameters of a deployment: those of a profile, then those given as Key=Value. It refuses what no template
knows, which the SAM CLI drops in silence, and names the parameters for safety that are not set.
"""

import pathlib
import re
import sys

TEMPLATES = ["template.yaml", "pkg/app/state/state.yaml"]
PROFILES = pathlib.Path(".tools/profiles")
SAFETY = [
    "AlarmTopicArn", "AccountConcurrency", "AuthorizerConcurrency", "DevelopersConcurrency", "WebhooksConcurrency",
    "ApiConcurrency", "AddressRate", "AccessLogs",
]


def main():
    values = chosen(*sys.argv[1:])
    unset = [name for name in SAFETY if not values.get(name)]
    if unset:
        print("not set, so as deployed before or by default:", *unset, file=sys.stderr)
    print(*(f"{name}={value}" for name, value in values.items()))


def chosen(profile, *given):
    """Returns the values by parameter. A parameter that the profile leaves empty has to be given."""
    basis = pairs(line for line in profile_text(profile).splitlines() if not line.startswith("#"))
    values = basis | pairs(given)
    if unknown := sorted(values.keys() - defaults()):
        sys.exit(f"no template has the parameter {', '.join(unknown)}")
    if missing := [name for name in basis if not values[name]]:
        sys.exit(f"PROFILE={profile} takes a value of yours: PARAMETERS=\"{missing[0]}=...\"")
    return values


def profile_text(name):
    try:
        return (PROFILES / name).read_text() if name else ""
    except OSError:
        sys.exit(f"there is no profile {name} in {PROFILES}")


def pairs(texts):
    split = [text.partition("=") for text in texts]
    if wrong := [name for name, equals, _ in split if not equals]:
        sys.exit(f"{wrong[0]} is not Key=Value")
    return {name: value for name, _, value in split}


def defaults():
    """Returns the defaults of all parameters of the templates, read without a YAML parser: make deploy's test has none."""
    found = {}
    for template in TEMPLATES:
        section = re.search(r"^Parameters:\n(.*?)^\S", pathlib.Path(template).read_text(), re.M | re.S)[1]
        for name, body in re.findall(r"^  (\w+):.*\n((?:    .*\n)*)", section, re.M):
            default = re.search(r"^    Default: (.*)$", body, re.M)
            found[name] = default[1].strip("'") if default else ""
    return found


if __name__ == "__main__":
    main()

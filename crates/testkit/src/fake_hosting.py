#!/usr/bin/env -S python3 -ISB
"""A hosting service whose state is a file, as its tools `gh` and `glab` show it, and as a person on it changes it.

The name under which it is started decides: gh, glab or person. It knows the commands that the providers use, with their
flags and fields, and refuses everything else, as the real tools do.
"""
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
STATE = os.path.join(ROOT, "state.json")
ASSOCIATIONS = {"write": "MEMBER", "read": "CONTRIBUTOR", "none": "NONE"}
LEVELS = {"write": 30, "read": 20}
LIST_FIELDS = {
    "number", "state", "url", "body", "title", "author", "updatedAt", "headRefName", "headRefOid", "headRepositoryOwner",
    "baseRefName", "mergeCommit", "mergeable", "reviewDecision", "statusCheckRollup",
}
GIT_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Service",
    "GIT_AUTHOR_EMAIL": "service@example.com",
    "GIT_COMMITTER_NAME": "Service",
    "GIT_COMMITTER_EMAIL": "service@example.com",
}


def fail(message, code=1):
    sys.stderr.write(message + "\n")
    sys.exit(code)


def git(*arguments, at=None):
    ran = subprocess.run(
        ["git", *arguments], cwd=at, env=GIT_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        fail(f"git {' '.join(arguments)}: {ran.stderr}")
    return ran.stdout.strip()


class Service:
    """The state, locked from the first look to the last change."""

    def __init__(self):
        self.lock = open(os.path.join(ROOT, "lock"), "w", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        with open(STATE, encoding="utf-8") as file:
            self.state = json.load(file)

    def save(self):
        new = STATE + ".new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump(self.state, file, indent=1)
        os.replace(new, STATE)

    def unlock(self):
        self.save()
        self.lock.close()

    def number(self):
        self.state["last_id"] += 1
        return self.state["last_id"]

    def fault(self, operation):
        names = ["any", operation]
        # The question after a try, told from the one before it.
        if operation == "find" and self.state.get("has_tried"):
            names.append("find-again")
        self.state["has_tried"] = operation == "create"
        for fault in self.state["faults"]:
            if fault["times"] > 0 and fault["on"] in names:
                fault["times"] -= 1
                return fault["what"]
        return None

    def tip(self, branch):
        found = subprocess.run(
            ["git", "rev-parse", "--verify", "--quiet", "refs/heads/" + branch],
            cwd=self.state["origin"], env=GIT_ENVIRONMENT, capture_output=True, text=True, check=False,
        )
        return found.stdout.strip()

    def pull(self, number):
        for pull in self.state["pulls"]:
            if pull["number"] == int(number):
                return self.refreshed(pull)
        return None

    def pulls(self):
        return [self.refreshed(pull) for pull in self.state["pulls"]]

    def refreshed(self, pull):
        tip = self.tip(pull["head"]) if pull["state"] == "open" else ""
        if tip and tip != pull["head_commit"]:
            pull["head_commit"] = tip
            # Checks are those of a commit.
            pull["checks"] = []
            self.touch(pull)
        return pull

    def has_conflict(self, pull):
        if pull["state"] != "open" or not self.tip(pull["base"]):
            return False
        tried = subprocess.run(
            ["git", "merge-tree", "--write-tree", "refs/heads/" + pull["base"], pull["head_commit"]],
            cwd=self.state["origin"], env=GIT_ENVIRONMENT, capture_output=True, check=False,
        )
        return tried.returncode == 1

    def touch(self, pull):
        pull["changes"] += 1

    def updated(self, pull):
        return f"2026-01-01T00:{pull['changes'] // 60:02}:{pull['changes'] % 60:02}Z"

    def url(self, pull):
        middle = "pull" if self.state["service"] == "gh" else "-/merge_requests"
        return f"https://{self.state['host']}/{self.state['path']}/{middle}/{pull['number']}"

    def create(self, title, body, head, base):
        owner, path_owner = None, self.state["path"].rsplit("/", 1)[0]
        if ":" in head:
            owner, head = head.split(":", 1)
        if any(p["state"] == "open" and p["head"] == head and p["base"] == base for p in self.state["pulls"]):
            return None, "exists"
        if not self.tip(base) or not self.tip(head):
            return None, "no branch"
        if self.tip(base) == self.tip(head):
            return None, "no commits"
        pull = {
            "number": len(self.state["pulls"]) + 1, "title": title, "body": body, "head": head, "base": base,
            "head_owner": owner or path_owner, "state": "open", "author": self.state["login"],
            "head_commit": self.tip(head), "merge_commit": None, "squash_commit": None, "checks": [], "reviews": [],
            "comments": [], "notes": [], "approval": "", "changes": 0,
        }
        self.state["pulls"].append(pull)
        return pull, None


def misbehave(service, operation):
    """Does what the test asked for instead of the work. Gives the fault if the work is to be done before it."""
    what = service.fault(operation)
    if what is None:
        return None
    if what.startswith("half-created"):
        return what
    service.unlock()
    is_gh = service.state["service"] == "gh"
    if what == "rate-limit":
        fail("gh: API rate limit exceeded for user ID 7. (HTTP 403)" if is_gh else "glab: HTTP 429")
    if what == "logged-out":
        if is_gh:
            fail("To get started with GitHub CLI, please run:  gh auth login", 4)
        fail("glab: 401 Unauthorized (HTTP 401)")
    if what == "silently-logged-out":
        fail("HTTP 401: Bad credentials (https://api.github.com/graphql)", 0)
    if what == "unreachable":
        fail("error connecting to api.github.com" if is_gh else "Get \"https://x/\": dial tcp: no such host")
    if what == "refused":
        fail("gh: Validation Failed (HTTP 422)" if is_gh else "glab: 400 Bad request (HTTP 400)")
    if what == "forbidden":
        fail("gh: Resource not accessible by integration (HTTP 403)" if is_gh else "glab: 403 Forbidden (HTTP 403)")
    if what == "garbage":
        print("<html>Sorry</html>")
        sys.exit(0)
    if what == "half-json":
        print('[{"number": 1, "state"')
        sys.exit(0)
    if what == "huge":
        line = "x" * 65536
        try:
            while True:
                sys.stdout.write(line)
        except BrokenPipeError:
            os._exit(1)
    if what == "slow":
        subprocess.run(["sleep", "3600"], check=False)
        sys.exit(1)
    fail(f"there is no fault {what}", 2)


def half_created(service, what):
    """The service has done it, and the answer is lost."""
    service.unlock()
    if what == "half-created-slow":
        subprocess.run(["sleep", "3600"], check=False)
    if what == "half-created-silent":
        sys.exit(0)
    fail("unexpected EOF")


def arguments(words, valued, flags):
    """Options and other words; what the tool does not know ends it."""
    options, rest, at = {}, [], 0
    while at < len(words):
        word = words[at]
        if word in flags:
            options[word] = True
        elif word in valued:
            at += 1
            if at == len(words):
                fail(f"flag needs an argument: {word}")
            options.setdefault(word, []).append(words[at])
        elif word.startswith("-"):
            fail(f"unknown flag: {word}")
        else:
            rest.append(word)
        at += 1
    return options, rest


def one(options, name):
    return options.get(name, [None])[0]


def request(words):
    """Method, path, query and fields of `api`."""
    options, rest = arguments(words, {"--hostname", "--method", "--raw-field", "--field"}, {"--paginate"})
    if len(rest) != 1:
        fail("accepts 1 arg(s)")
    fields = dict(field.split("=", 1) for field in options.get("--raw-field", []))
    for field in options.get("--field", []):
        key, value = field.split("=", 1)
        fields[key] = sys.stdin.read() if value == "@-" else value
    path, _, query = rest[0].partition("?")
    method = one(options, "--method") or ("POST" if fields else "GET")
    query = {name: values[0] for name, values in urllib.parse.parse_qs(query).items()}
    return options, method, path, query, fields


def print_pages(rows, query, options):
    """Each page is an array of its own, as older versions print them."""
    size = int(query.get("per_page", "30"))
    pages = [rows[at:at + size] for at in range(0, len(rows), size)] or [[]]
    for page in pages if "--paginate" in options else pages[:1]:
        print(json.dumps(page))


def gh_user(service, login):
    if login is None:
        return None
    kind = "Bot" if service.state["people"].get(login, {}).get("bot") else "User"
    return {"login": login, "type": kind}


def gh_text(service, text):
    access = service.state["people"].get(text["author"], {}).get("access", "none")
    row = {"id": text["id"], "user": gh_user(service, text["author"]), "body": text["body"]}
    row["author_association"] = ASSOCIATIONS[access]
    row["html_url"] = f"https://{service.state['host']}/comment/{text['id']}"
    return row


def gh_check(check):
    if check["kind"] == "status":
        return {
            "__typename": "StatusContext", "context": check["name"], "state": check["state"], "targetUrl": check["link"],
            "startedAt": check["at"],
        }
    has_ended = check["state"] not in ("QUEUED", "IN_PROGRESS")
    return {
        "__typename": "CheckRun", "name": check["name"], "workflowName": "CI", "detailsUrl": check["link"],
        "status": "COMPLETED" if has_ended else check["state"], "conclusion": check["state"] if has_ended else "",
        "startedAt": check["at"], "completedAt": check["at"] if has_ended else "0001-01-01T00:00:00Z",
    }


def gh_pull(service, pull, fields):
    merged = pull["merge_commit"]
    row = {
        "number": pull["number"], "state": pull["state"].upper(), "url": service.url(pull), "body": pull["body"],
        "title": pull["title"], "author": {"login": pull["author"], "is_bot": False}, "updatedAt": service.updated(pull),
        "headRefName": pull["head"], "headRefOid": pull["head_commit"],
        "headRepositoryOwner": {"login": pull["head_owner"]}, "baseRefName": pull["base"],
        "mergeCommit": {"oid": merged} if merged else None, "reviewDecision": pull["approval"],
        "mergeable": "CONFLICTING" if service.has_conflict(pull) else "MERGEABLE",
        "statusCheckRollup": [gh_check(check) for check in pull["checks"]],
    }
    unknown = set(fields) - LIST_FIELDS
    if unknown:
        fail(f"Unknown JSON field: {sorted(unknown)[0]!r}")
    return {name: row[name] for name in fields}


def gh_repository(service, options):
    expected = f"{service.state['host']}/{service.state['path']}"
    if one(options, "--repo") != expected:
        fail(f"GraphQL: Could not resolve to a Repository with the name {one(options, '--repo')!r}. (repository)")


def gh_pr_list(service, words):
    options, _ = arguments(words, {"--repo", "--state", "--head", "--author", "--limit", "--json"}, set())
    operation = "find" if "--head" in options else "list"
    misbehave(service, operation)
    gh_repository(service, options)
    found = [pull for pull in service.pulls() if pull["state"] == (one(options, "--state") or "open")]
    if "--head" in options:
        found = [pull for pull in found if pull["head"] == one(options, "--head")]
    if one(options, "--author") == "@me":
        found = [pull for pull in found if pull["author"] == service.state["login"]]
    found = found[:int(one(options, "--limit") or 30)]
    print(json.dumps([gh_pull(service, pull, one(options, "--json").split(",")) for pull in found]))


def gh_pr_view(service, words):
    options, rest = arguments(words, {"--repo", "--json"}, set())
    misbehave(service, "show")
    gh_repository(service, options)
    pull = service.pull(rest[0])
    if pull is None:
        fail(f"GraphQL: Could not resolve to a PullRequest with the number of {rest[0]}. (repository.pullRequest)")
    print(json.dumps(gh_pull(service, pull, one(options, "--json").split(","))))


def gh_api(service, words):
    options, method, path, query, fields = request(words)
    if path == "user":
        misbehave(service, "login")
        print(json.dumps(gh_user(service, service.state["login"])))
        return
    if path == "rate_limit":
        misbehave(service, "rate_limit")
        reset = service.state["rate_limit_reset"]
        spent = {"remaining": 0 if reset else 10, "reset": reset}
        print(json.dumps({"resources": {"core": {"remaining": 5, "reset": 1}, "graphql": spent}}))
        return
    found = re.fullmatch(r"repos/(.+)/(pulls|issues)(?:/(\d+))?(?:/(reviews|comments))?", path)
    if found is None or found[1] != service.state["path"]:
        fail("gh: Not Found (HTTP 404)")
    if method == "POST" and found[3] is None:
        fault = misbehave(service, "create")
        pull, why = service.create(fields["title"], fields["body"], fields["head"], fields["base"])
        if pull is None:
            print(json.dumps({"message": "Validation Failed", "errors": [{"message": why}]}))
            fail("gh: Validation Failed (HTTP 422)")
        if fault:
            half_created(service, fault)
        print(json.dumps({"number": pull["number"], "html_url": service.url(pull), "state": "open"}))
        return
    pull = service.pull(found[3])
    if pull is None:
        fail("gh: Not Found (HTTP 404)")
    if method == "PATCH":
        misbehave(service, "update")
        pull["title"], pull["body"] = fields["title"], fields["body"]
        service.touch(pull)
        print(json.dumps({"number": pull["number"], "html_url": service.url(pull)}))
        return
    misbehave(service, "feedback")
    if found[4] == "reviews":
        rows = [
            {**gh_text(service, text), "state": text["state"], "submitted_at": text["at"]} for text in pull["reviews"]
        ]
    elif found[2] == "pulls":
        rows = [
            {
                **gh_text(service, text), "path": text["file"], "line": None, "original_line": text["line"],
                "created_at": text["at"],
            }
            for text in pull["comments"]
        ]
    else:
        rows = [{**gh_text(service, text), "created_at": text["at"]} for text in pull["notes"]]
    print_pages(rows, query, options)


def run_gh(service, words):
    known = {("pr", "list"): gh_pr_list, ("pr", "view"): gh_pr_view}
    if words[:1] == ["api"]:
        gh_api(service, words[1:])
    elif tuple(words[:2]) in known:
        known[tuple(words[:2])](service, words[2:])
    else:
        fail(f"unknown command {' '.join(words[:2])!r} for \"gh\"")


def glab_user(service, login):
    return {"id": service.state["people"].get(login, {}).get("id", 1), "username": login}


def glab_pull(service, pull):
    states = {"open": "opened", "merged": "merged", "closed": "closed"}
    return {
        "iid": pull["number"], "title": pull["title"], "description": pull["body"], "state": states[pull["state"]],
        "web_url": service.url(pull), "author": glab_user(service, pull["author"]), "source_branch": pull["head"],
        "target_branch": pull["base"], "sha": pull["head_commit"], "merge_commit_sha": pull["merge_commit"],
        "squash_commit_sha": pull["squash_commit"], "detailed_merge_status": pull["approval"] or "mergeable",
        "updated_at": service.updated(pull), "has_conflicts": service.has_conflict(pull),
    }


def glab_note(service, text):
    row = {"id": text["id"], "body": text["body"], "author": glab_user(service, text["author"]), "system": False}
    row.update({"created_at": text["at"], "resolvable": bool(text.get("file")), "resolved": text.get("resolved", False)})
    if text.get("file"):
        row["position"] = {"new_path": text["file"], "new_line": text["line"], "old_path": text["file"]}
    return row


def glab_graphql(service, query):
    misbehave(service, "list")
    path = re.search(r'project\(fullPath: "([^"]+)"\)', query)
    asked = re.search(r"iids: \[([^\]]*)\], first: (\d+)", query)
    if path is None or asked is None or query.count("{") != query.count("}"):
        print(json.dumps({"errors": [{"message": "Parse error on query"}]}))
        fail("glab: Parse error on query")
    if path[1] != service.state["path"]:
        print(json.dumps({"data": {"project": None}}))
        return
    numbers = [int(number.strip('"')) for number in asked[1].split(",") if number]
    nodes = []
    for pull in service.pulls():
        if pull["number"] in numbers:
            row = glab_pull(service, pull)
            node = {"iid": str(row["iid"]), "state": row["state"], "updatedAt": row["updated_at"]}
            node.update({"diffHeadSha": row["sha"], "targetBranch": row["target_branch"]})
            node["conflicts"] = row["has_conflicts"]
            node["headPipeline"] = {"status": pull["checks"][-1]["state"].upper()} if pull["checks"] else None
            nodes.append(node)
    print(json.dumps({"data": {"project": {"mergeRequests": {"nodes": nodes[:int(asked[2])]}}}}))


def run_glab(service, words):
    if words[:1] != ["api"]:
        fail(f"Unknown command: {' '.join(words[:2])}")
    options, method, path, query, fields = request(words[1:])
    if one(options, "--hostname") != service.state["host"]:
        fail("glab: 401 Unauthorized (HTTP 401)")
    if path == "user":
        misbehave(service, "login")
        print(json.dumps(glab_user(service, service.state["login"])))
        return
    if path == "graphql":
        glab_graphql(service, fields["query"])
        return
    project = "projects/" + urllib.parse.quote(service.state["path"], safe="") + "/"
    if not path.startswith(project):
        fail("glab: 404 Project Not Found (HTTP 404)")
    path = path[len(project):]
    if path == "merge_requests" and method == "POST":
        fault = misbehave(service, "create")
        pull, why = service.create(
            fields["title"], fields["description"], fields["source_branch"], fields["target_branch"]
        )
        if pull is None:
            print(json.dumps({"message": [why]}))
            fail(f"glab: {why} (HTTP 409)")
        if fault:
            half_created(service, fault)
        print(json.dumps(glab_pull(service, pull)))
    elif path == "merge_requests":
        misbehave(service, "find")
        if query.get("state") != "opened":
            fail("glab: 400 Bad request (HTTP 400)")
        found = [pull for pull in service.pulls() if pull["state"] == "open"]
        found = [pull for pull in found if pull["head"] == query["source_branch"]]
        print_pages([glab_pull(service, pull) for pull in found], query, options)
    elif member := re.fullmatch(r"members/all/(\d+)", path):
        misbehave(service, "access")
        people = service.state["people"].items()
        levels = [LEVELS.get(person["access"]) for _, person in people if person["id"] == int(member[1])]
        if not levels or levels[0] is None:
            fail("glab: 404 Not found (HTTP 404)")
        print(json.dumps({"id": int(member[1]), "access_level": levels[0]}))
    elif commit := re.fullmatch(r"repository/commits/([0-9a-f]+)/statuses", path):
        misbehave(service, "checks")
        of_commit = [pull for pull in service.pulls() if pull["head_commit"] == commit[1]]
        rows = [
            {
                "name": check["name"], "status": check["state"], "target_url": check["link"], "created_at": check["at"],
                "finished_at": check["at"], "allow_failure": check["kind"] == "optional",
            }
            for pull in of_commit[:1] for check in pull["checks"]
        ]
        print_pages(rows, query, options)
    else:
        found = re.fullmatch(r"merge_requests/(\d+)(/notes)?", path)
        pull = service.pull(found[1]) if found else None
        if pull is None:
            fail("glab: 404 Not found (HTTP 404)")
        if method == "PUT":
            misbehave(service, "update")
            pull["title"], pull["body"] = fields["title"], fields["description"]
            service.touch(pull)
            print(json.dumps(glab_pull(service, pull)))
        elif found[2]:
            misbehave(service, "feedback")
            rows = [glab_note(service, text) for text in pull["comments"] + pull["notes"] + pull["reviews"]]
            system = {"id": 1, "body": "changed the title", "author": glab_user(service, pull["author"]), "system": True}
            print_pages([system, *rows], query, options)
        else:
            misbehave(service, "show")
            print(json.dumps(glab_pull(service, pull)))


def merge(service, pull, how):
    """Moves the base branch of the origin as the service does."""
    origin = service.state["origin"]
    with tempfile.TemporaryDirectory(dir=ROOT) as clone:
        git("clone", "--quiet", origin, clone)
        head, base = "origin/" + pull["head"], pull["base"]
        git("checkout", "--quiet", "-B", base, "origin/" + base, at=clone)
        title = f"{pull['title']} (#{pull['number']})"
        if how == "merge":
            git("merge", "--quiet", "--no-ff", "-m", f"Merge {title}", head, at=clone)
        elif how == "squash":
            git("merge", "--quiet", "--squash", head, at=clone)
            git("commit", "--quiet", "-m", title, at=clone)
        elif how == "rebase":
            git("checkout", "--quiet", "-B", "rebased", head, at=clone)
            # Always new commits, as GitHub makes them; GitLab rebases the branch itself first.
            git("rebase", "--quiet", "--force-rebase", "origin/" + base, at=clone)
            git("checkout", "--quiet", base, at=clone)
            git("merge", "--quiet", "--ff-only", "rebased", at=clone)
        else:
            fail(f"there is no way {how} to merge", 2)
        commit = git("rev-parse", "HEAD", at=clone)
        git("push", "--quiet", "origin", base, at=clone)
        if service.state["service"] == "glab":
            if how == "rebase":
                git("push", "--quiet", "--force", "origin", "rebased:" + pull["head"], at=clone)
                pull["head_commit"] = commit
            pull["squash_commit"] = commit if how == "squash" else None
            pull["merge_commit"] = commit if how == "merge" else None
        else:
            pull["merge_commit"] = commit
    pull["state"] = "merged"
    print(commit)


def push_foreign(service, pull, name, text):
    """A commit of a person on the head branch."""
    with tempfile.TemporaryDirectory(dir=ROOT) as clone:
        git("clone", "--quiet", "--branch", pull["head"], service.state["origin"], clone)
        with open(os.path.join(clone, name), "w", encoding="utf-8") as file:
            file.write(text)
        git("add", name, at=clone)
        git("commit", "--quiet", "-m", f"Change {name}", at=clone)
        git("push", "--quiet", "origin", pull["head"], at=clone)
        print(git("rev-parse", "HEAD", at=clone))
    service.refreshed(pull)


def run_person(service, words):
    verb, rest = words[0], words[1:]
    state = service.state
    if verb == "account":
        login, access, kind = rest
        state["people"][login] = {"id": service.number(), "access": access, "bot": kind == "bot"}
        return
    if verb == "set":
        state[rest[0]] = json.loads(rest[1])
        return
    pull = service.pull(rest[0])
    if pull is None:
        fail(f"there is no pull request {rest[0]}", 2)
    rest = rest[1:]
    text = {"id": service.number(), "at": state["now"]}
    if verb == "merge":
        merge(service, pull, rest[0])
    elif verb == "push":
        push_foreign(service, pull, *rest)
    elif verb in ("close", "reopen"):
        pull["state"] = "closed" if verb == "close" else "open"
    elif verb == "base":
        pull["base"] = rest[0]
    elif verb == "edit":
        pull["body"] = rest[0]
    elif verb == "approval":
        pull["approval"] = rest[0]
    elif verb == "review":
        pull["reviews"].append({**text, "author": rest[0], "state": rest[1], "body": rest[2]})
        print(text["id"])
    elif verb == "comment":
        author, file, line, body = rest
        pull["comments"].append({**text, "author": author, "file": file, "line": int(line), "body": body})
        print(text["id"])
    elif verb == "note":
        pull["notes"].append({**text, "author": rest[0], "body": rest[1]})
        print(text["id"])
    elif verb == "resolve":
        for comment in pull["comments"]:
            if comment["id"] == int(rest[0]):
                comment["resolved"] = True
    elif verb == "check":
        name, check_state, kind, link = rest
        check = {"name": name, "state": check_state, "kind": kind, "link": link, "at": state["now"]}
        pull["checks"].append(check)
        # A check run does not touch the pull request itself.
        pull["changes"] -= 1
    else:
        fail(f"a person cannot {verb}", 2)
    service.touch(pull)


def main():
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    with open(os.path.join(ROOT, "calls"), "a", encoding="utf-8") as calls:
        if name != "person":
            calls.write(json.dumps({"argv": [name, *words], "cwd": os.getcwd()}) + "\n")
    service = Service()
    {"gh": run_gh, "glab": run_glab, "person": run_person}[name](service, words)
    service.save()
    sys.stdout.flush()


if __name__ == "__main__":
    main()

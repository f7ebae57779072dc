"""Many more tools, each among neighbours of its kind, for training alone: only the verb or the object tells them apart.

Written as text. A family begins with a tuple of the tools of the other table for which its requests may be meant. A
tool is its names, ``=`` what may be said of it, ``-`` its parameters, and the requests. A parameter is
``key|other key: kind``, with ``+`` where nobody has to give it; requests may give it all the same. A kind is one of
``KINDS`` of this module or the other one, or

- ``=a,b:said,c:said/said`` one of a few choices, which people say as they are or in the words behind the colon,
- ``~a,b`` one of these or another text,
- ``#2-60`` a whole number, ``#1-9*50`` a multiple of 50,
- ``?said/said,said/said`` true and false,
- ``[kind]`` a list of some.

``{~kind}`` in a request is a value that is not meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from words import Words, listed, made_up

from skills.everyday_values import KINDS as EVERYDAY_KINDS

# A value and how people say it.
Drawn = tuple[Any, str]


@dataclass(frozen=True)
class Kind:
    """A kind of values: how it is described, and one of them with how it is said."""

    schema: Mapping[str, Any]
    draw: Callable[[Words], Drawn]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool, under the keys that it may have."""

    keys: tuple[str, ...]
    kind: Kind
    needed: bool


@dataclass(frozen=True)
class Wide:
    """A tool with the ways of asking for it; a request gives every parameter that it names and all that are needed."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    asks: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Tools of one domain whose requests fit one of them only.

    Attributes:
        name: of the domain.
        clashing: the first names of tools of the other table that may be meant as well.
        tools: that are neighbours.
    """

    name: str
    clashing: frozenset[str]
    tools: tuple[Wide, ...]


def _file(words: Words, suffixes: tuple[str, ...]) -> str:
    rng = words.rng
    stem = rng.choice(("contract", "offer", "letter", "IMG", "scan", "holiday", "report", made_up(rng), made_up(rng)))
    return f"{stem}{rng.choice(('', '_', '-'))}{words.number(1, 2999)}.{rng.choice(suffixes)}"


def _street(words: Words) -> str:
    rng, number = words.rng, words.number(1, 120)
    name = rng.choice(("Mill", "Church", "Park", "Garden", "Station", words.name(), made_up(rng).capitalize()))
    kind = rng.choice(("Street", "Road", "Lane", "Avenue", "Square"))
    return rng.choice((f"{number} {name} {kind}", f"{name} {kind} {number}"))


def _field(words: Words) -> str:
    rng = words.rng
    return rng.choice(
        (
            f"field {words.number(1, 40)}",
            f"{rng.choice(('North', 'South', 'River', 'Hill', 'Long', made_up(rng).capitalize()))} Field",
            f"{rng.choice(('Lower', 'Upper', 'Old', made_up(rng).capitalize()))} Meadow",
            f"{words.name()}'s Acre",
        )
    )


def _plate(words: Words) -> str:
    rng = words.rng
    letters = "".join(rng.choices("ABCDEFGHKLMNPRSTUVWXZ", k=4))
    return rng.choice(
        (
            f"{letters[:2]}-{letters[2:]} {words.digits(3)}",
            f"{letters[:3]}{words.digits(3)}",
            f"{letters[0]} {words.digits(4)}",
        )
    )


def _team(words: Words) -> str:
    rng = words.rng
    return rng.choice(
        (f"FC {words.city()}", f"{words.city()} {rng.choice(('United', 'Tigers', 'Rovers'))}", words.city())
    )


_MADE: dict[str, Callable[[Words], Any]] = {
    "chess_field": lambda words: f"{words.rng.choice('abcdefgh')}{words.number(1, 8)}",
    "early": lambda words: f"2027-{words.number(1, 6):02}-{words.number(1, 28):02}",
    "late": lambda words: f"2027-{words.number(7, 12):02}-{words.number(1, 28):02}",
    "old_file": lambda words: _file(words, ("odt", "rtf", "doc", "md", "tex", "pages")),
    "decimal": lambda words: round(words.rng.uniform(0.1, 60), words.rng.choice((1, 2))),
    "fever": lambda words: round(words.rng.uniform(37.1, 40.4), 1),
    "field": _field,
    "hex": lambda words: "".join(words.rng.choices("0123456789abcdef", k=words.rng.choice((7, 7, 8, 10)))),
    "ip": lambda words: ".".join(str(words.number(1, 254)) for _ in range(4)),
    "iso": lambda words: f"20{words.number(25, 29)}-{words.number(1, 12):02}-{words.number(1, 28):02}",
    "pdf": lambda words: _file(words, ("pdf",)),
    "photo": lambda words: _file(words, ("jpg", "png", "jpeg")),
    "plate": _plate,
    "road": lambda words: f"{words.rng.choice(('A', 'B', 'M', 'E', 'Route '))}{words.number(1, 99)}",
    "seat": lambda words: f"{words.number(1, 38)}{words.rng.choice('ABCDEF')}",
    "shelf": lambda words: f"{words.rng.choice('ABCDEFGH')}{words.number(1, 60)}",
    "street": _street,
    "team": _team,
}
_TYPES = {str: "string", int: "integer", float: "number"}


def kind_of(text: str) -> Kind:
    """A kind as the table writes it."""
    mark, rest = text[0], text[1:]
    if mark == "[":
        return _lists(kind_of(text[1:-1]))
    if mark in "=?":
        return _choices(rest) if mark == "=" else _flag(rest)
    if mark == "~":
        return _texts(tuple(rest.split(",")))
    if mark == "#":
        return _numbers(rest)
    if text in _MADE:
        draw = _MADE[text]
        numeric = text in ("decimal", "fever")
        return Kind({"type": "number" if numeric else "string"}, lambda words: _plainly(draw(words)))
    schema, drawn = EVERYDAY_KINDS[text]
    return Kind(schema, lambda words: _plainly(drawn(words)))


def _plainly(value: Any) -> Drawn:
    return value, str(value)


def _choices(text: str) -> Kind:
    said = {value: tuple(ways.split("/")) for value, _, ways in (part.partition(":") for part in text.split(","))}
    numeric = all(re.fullmatch(r"\d+(\.\d+)?", value) for value in said)
    values: dict[str, Any] = {value: json.loads(value) if numeric else value for value in said}

    def draw(words: Words) -> Drawn:
        value = words.rng.choice(list(said))
        return values[value], words.rng.choice([way or value for way in said[value]])

    types = [_TYPES[type(value)] for value in values.values()]
    return Kind({"type": "number" if "number" in types else types[0], "enum": list(values.values())}, draw)


def _flag(text: str) -> Kind:
    pairs = [tuple(pair.split("/")) for pair in text.split(",")]

    def draw(words: Words) -> Drawn:
        true, false = words.rng.choice(pairs)
        return (True, true) if words.rng.random() < 0.5 else (False, false)

    return Kind({"type": "boolean"}, draw)


def _texts(values: tuple[str, ...]) -> Kind:
    return Kind({"type": "string"}, lambda words: _plainly(words.rng.choice(values)))


def _numbers(text: str) -> Kind:
    bounds, _, step = text.partition("*")
    low, high = map(int, bounds.split("-"))

    def draw(words: Words) -> Drawn:
        value = words.number(low, high) * int(step or 1)
        return value, f"{value:,}" if step and value >= 1000 and words.rng.random() < 0.15 else str(value)

    return Kind({"type": "integer"}, draw)


def _lists(kind: Kind) -> Kind:
    def draw(words: Words) -> Drawn:
        values: dict[str, Any] = {}
        for _ in range(words.rng.choice((2, 2, 3))):
            value, said = kind.draw(words)
            values.setdefault(said, value)
        return list(values.values()), listed(list(values))

    return Kind({"type": "array", "items": dict(kind.schema)}, draw)


def _parameter(text: str) -> Parameter:
    keys, kind = text.lstrip("+").split(": ", maxsplit=1)
    return Parameter(tuple(keys.split("|")), kind_of(kind), not text.startswith("+"))


def tool_of(text: str) -> Wide:
    """A tool as the table writes it."""
    names, *lines = map(str.strip, text.strip().splitlines())
    described = " | ".join(line[2:] for line in lines if line.startswith("= "))
    given = "; ".join(line[2:] for line in lines if line.startswith("- "))
    asks = tuple(line for line in lines if not line.startswith(("= ", "- ")))
    return Wide(tuple(names.split()), tuple(described.split(" | ")), tuple(map(_parameter, given.split("; "))), asks)


def _family(name: str, clashing: str, text: str) -> Family:
    return Family(name, frozenset(clashing.split()), tuple(map(tool_of, re.split(r"\n\s*\n", text.strip()))))


FAMILIES = (
    _family(
        "code",
        "git_checkout run_tests",
        """create_branch new_branch make_branch branch_off
        = Create a new branch. | Makes a branch of the code, optionally from another one.
        = Start a new line of work in the repository. Does not switch to it.
        - name|branch|branch_name: branch; +base|from_branch|start_point: branch
        Create a branch {name}.
        new branch {name} pls
        I need a fresh branch called {name}.
        Could you make me a branch named {name}?
        Branch off from {base} and call it {name}.
        make {name} off {base}
        {name} should be its own branch, it doesn't exist yet.
        We start work on something new, so there has to be a branch {name}.
        Starting at {base}, I'd like a new branch with the name {name}.
        git branch {name}
        Before I touch anything, give me a new branch, {name} is a good name.

        delete_branch remove_branch drop_branch
        = Delete a branch. | Removes a branch from the repository. Use only for branches that are merged.
        = Throw a branch away for good.
        - name|branch|branch_name: branch
        Delete the branch {name}.
        Get rid of branch {name}.
        {name} is merged, so the branch can go.
        nobody needs the branch {name} anymore, remove it
        Would you please remove the branch {name} from the repository?
        drop branch {name}
        Clean up: branch {name} is dead.
        {~name} finished {name} last week and it is merged, throw that branch away.
        git branch -d {name}
        There are too many branches. Begin with {name} and kill it.

        merge_branch merge merge_into combine_branches
        = Merge one branch into another. | Merges source into target.
        = Bring the commits of a branch into another branch; both stay.
        - source|from|head: branch; target|into|base: branch
        Merge {source} into {target}.
        {source} -> {target}, merge pls
        Into {target}, please merge {source}.
        Everything from {source} should be in {target}.
        Can you bring the work on {source} over to {target}?
        {target} lacks what is in {source}, merge it.
        We are ready: merge branch {source} into branch {target}.
        The changes in {source} must land in {target} today.
        I'd like {target} to have all commits of {source}.
        get {source} merged into {target}
        Both {~name} and I have approved it, so {source} may go into {target}.

        rename_branch move_branch change_branch_name
        = Give a branch another name. | Renames a branch. | Change what a branch is called, nothing else.
        - old_name|old|branch|from: branch; new_name|new|to: branch
        Rename the branch {old_name} to {new_name}.
        {old_name} is a silly name for a branch, call it {new_name}.
        branch {old_name} should be called {new_name} instead
        I misspelled the branch {old_name}. It should read {new_name}.
        From now on, {new_name} is the name of the branch {old_name}.
        Change the name of branch {old_name} into {new_name}, please.
        Could {old_name} be named {new_name}? The branch, I mean.
        I'd prefer {new_name} as the name of what is now the branch {old_name}.
        git branch -m {old_name} {new_name}
        new name for branch {old_name}: {new_name}

        revert_commit undo_commit roll_back_commit
        = Undo a commit. | Makes a new commit that takes another one back.
        = Reverts what a commit changed, by its hash.
        - commit|hash|sha|commit_id: hex
        Revert commit {commit}.
        {commit} broke everything, take it back.
        undo {commit}
        Please roll back the commit {commit}.
        The site is down since {commit}. Undo that commit.
        Can we have it as it was before commit {commit}?
        I should never have committed {commit}, take it out again.
        git revert {commit}
        Commit {commit} was a mistake by {~name}, please reverse it.
        What {commit} changed has to be undone.

        open_pull_request create_pull_request new_merge_request open_pr
        = Open a pull request. | Proposes a branch for review under a title.
        = Create a merge request from a branch. Does not merge anything.
        - title|name|subject: topic; branch|head|source: branch
        Open a pull request for {branch} with the title "{title}".
        PR from {branch}: {title}
        My work on {branch} is ready for review. Title: {title}
        Please propose the branch {branch} for review, it is about {title}.
        make a PR, title {title}, branch {branch}
        Could you put {branch} up for review as "{title}"?
        "{title}" shall be the title of a pull request from {branch}.
        I'd like others to look at {branch}. Open a request called {title}.
        new merge request: {title} ({branch})
        Get a pull request going, call it {title}, the branch is {branch}.

        approve_pull_request approve_pr accept_merge_request
        = Approve a pull request. | Says that a pull request is good as it is.
        = Gives the reviewer's consent to a change, by number.
        - number|pr|id|pull_request: #2-999; +comment|message: phrase
        Approve pull request {number}.
        PR {number} looks good to me.
        lgtm on {number}
        I have read number {number}, it can be accepted as it is.
        Please approve #{number}.
        No objections to pull request {number} from my side, sign it off.
        Approve PR {number} and comment "{comment}".
        Give {~name}'s pull request {number} the green light.
        my review of {number} is done: all fine, approve
        You may accept pull request {number}.

        close_pull_request reject_pr decline_merge_request
        = Close a pull request without merging it. | Turns a pull request down.
        = Declines a proposed change, by number.
        - number|pr|id|pull_request: #2-999
        Close pull request {number}.
        Turn down PR {number}.
        We won't take pull request {number}.
        reject {number}, it's no good
        Nobody works on PR {number} any more, so close it.
        Please decline the merge request {number}.
        PR {number} does the same as {~ticket} did, shut it.
        I'm against number {number}, that change shall not come in.
        close #{number} without merging
        Sorry for {~name}, but pull request {number} has to be refused.

        request_review ask_for_review assign_reviewer
        = Ask somebody to review a pull request. | Assigns a reviewer to a pull request.
        = Request a review. Not for approving.
        - number|pr|pull_request: #2-999; reviewer|user|person: name
        Ask {reviewer} to review PR {number}.
        {reviewer} should look at pull request {number}.
        Request a review of #{number} from {reviewer}.
        Who reviews {number}? Let it be {reviewer}.
        pr {number} -> reviewer {reviewer}
        I'd feel better if {reviewer} read pull request {number} first.
        Can you get {reviewer} to check number {number}?
        Pull request {number} still lacks a reviewer. {reviewer} has time.
        Put {reviewer} down as the reviewer for {number}.
        {~name} is on holiday, so {reviewer} must review PR {number}.
        """,
    ),
    _family(
        "operations",
        "restart_server server_status scale_service get_logs backup_database",
        """start_container run_container container_up
        = Start a container. | Starts a container that is stopped. | Bring a container up by its name.
        - container|name|id: server; +memory|memory_mb: #1-16*256
        Start the container {container}.
        container {container} up
        Bring {container} up, the container is still down.
        Why is the container {container} off? Switch it on.
        Please run the container {container}.
        Run container {container} with {memory} MB of memory.
        We need {container} again, start that container.
        Start {container} with a memory of {memory} MB.
        Could the container {container} be started?
        docker start {container}
        I stopped the container {container} an hour ago, it may run again.

        stop_container halt_container container_down
        = Stop a container. | Halts a running container. | Shut a container down; its data stay.
        - container|name|id: server
        Stop the container {container}.
        container {container} down
        Halt container {container}, please.
        We don't need the container {container} until tomorrow, shut it down.
        docker stop {container}
        {container} eats all our memory, stop that container.
        Could you shut the container {container} down?
        The container {container} must not run any longer.
        Make the container {container} stop.
        Take down container {container}.

        get_disk_space disk_usage free_space
        = How much space is free on the disk of a server. | Returns the disk usage of a machine.
        = Check the disk of a host.
        - server|host|machine: server
        How full is the disk of {server}?
        disk space on {server}?
        Is there room left on the disk of {server}?
        How many gigabytes are free on {server}?
        Does {server} have enough space for a backup of 40 GB?
        I'm afraid {server} is running out of space.
        Check how much storage is left on {server}.
        df {server}
        How much space do we have left on {server}?
        Before I upload the film: is the disk of {server} big enough?

        get_cpu_load cpu_usage processor_load
        = How busy the processor of a server is. | Returns the CPU load of a machine in percent. | CPU use of a host.
        - server|host|machine: server
        How busy is the processor of {server}?
        cpu load {server}
        Is {server} sweating? Tell me its CPU load.
        What's the CPU usage on {server} right now?
        How many percent of its processor does {server} use?
        {server} feels slow. How high is its CPU load?
        Show me the processor load of {server}, please.
        Is the processor of {server} at its limit?
        How hard is the CPU of {server} working?
        top on {server}, I only need the cpu

        clear_cache flush_cache purge_cache empty_cache
        = Empty the cache of a site or service. | Clears what is cached.
        = Purge the cache so that visitors see the newest pages.
        - service|site|server|name: server
        Clear the cache of {service}.
        flush cache {service}
        Visitors of {service} still see the old page, so purge its cache.
        Please empty the cache on {service}.
        The cache of {service} holds outdated stuff, throw it out.
        Could you clear what {service} has cached?
        {service}: cache needs emptying
        I changed the pictures on {service}, but the cache shows the old ones. Clear it.
        Purge {service}'s cache, thanks.
        get rid of cached pages on {service}

        renew_certificate update_certificate extend_certificate
        = Renew the certificate of a domain. | Gets a new TLS certificate for a site.
        = Replaces a certificate that is about to expire.
        - domain|host|site: server; +days|valid_days: #30-365
        Renew the certificate of {domain}.
        The certificate for {domain} runs out tomorrow, get a new one.
        cert {domain} expired!!
        Browsers say {domain} is not safe, its certificate is too old.
        Give {domain} a certificate for another {days} days.
        Could you please replace the TLS certificate of {domain}?
        {domain} needs a new certificate.
        We need a fresh certificate for {domain}, valid for {days} days.
        new tls cert for {domain} pls
        In a week the certificate of {domain} is over, so extend it.

        block_ip ban_ip deny_address firewall_block
        = Block an IP address. | Lets an address in no more. | Add an address to the block list of the firewall.
        - address|ip|ip_address: ip; +reason|comment: ~attack,spam,too many requests,scanning
        Block {address}.
        Ban the IP {address}.
        {address} attacks us, keep it out.
        No more traffic from {address}, please.
        Somebody at {address} tries passwords all night. Lock that address out.
        block ip {address} because of {reason}
        Could you put {address} on the block list? Reason: {reason}
        Firewall: deny {address}
        The address {address} shall not reach us any more.
        {~ip} is us, but {address} is not, so shut {address} out.

        unblock_ip unban_ip allow_address
        = Unblock an IP address. | Lets a blocked address in again. | Takes an address off the block list.
        - address|ip|ip_address: ip
        Unblock {address}.
        Let {address} in again.
        We blocked {address} by mistake, take that back.
        {address} is a customer and must not be blocked!
        unban {address}
        Please take {address} off the block list.
        Allow traffic from {address} again.
        {~name} can't reach us from {address}, since we blocked it. Undo that.
        The ban of {address} can be lifted.
        Would you remove the block on {address}?

        set_env_variable set_variable configure_env set_config
        = Set a variable of a service. | Sets a setting to a value.
        = Change one entry of the configuration of a service.
        - service|app|target: server; key|name|variable: ~LOG_LEVEL,TIMEOUT,MAX_USERS,PORT,CACHE_SIZE,RETRIES
        - value|to: #1-9000
        Set {key} to {value} on {service}.
        {service}: {key}={value}
        On {service}, {key} has to be {value}.
        Change {key} of {service} to {value}, please.
        I want {value} as {key} for {service}.
        export {key}={value} for {service}
        It was {~high}, but now {key} on {service} should be {value}.
        Could you give {service} a {key} of {value}?
        With {value} as {key}, {service} would be happier.
        update env of {service}, {key} -> {value}

        open_port allow_port expose_port
        = Open a port of a server. | Lets traffic through to a port. | Firewall rule that opens one port.
        - server|host|machine: server; port|number|port_number: #20-9999; +protocol: =tcp,udp
        Open port {port} on {server}.
        {server} needs port {port} open.
        Let traffic through to port {port} of {server}.
        port {port} on {server} is shut, open it
        Nobody can reach {server} at {port}. Open that port.
        Open {protocol} port {port} on {server}.
        Could you please open {port} ({protocol}) on the machine {server}?
        The firewall of {server} should let {port} through.
        On {server}, {port} must be open, as {~high} already is.
        Make port {port} available on {server}.
        """,
    ),
    _family(
        "database",
        "backup_database get_logs",
        """add_column new_column create_column
        = Add a column to a table. | Creates a column of a given type. | Alter a table: one more column.
        - table|table_name: table; column|name|column_name: oddword; type|data_type: =text,integer,date,boolean
        Add a {type} column {column} to the table {table}.
        {table} needs a column {column}, type {type}.
        In {table}, I'd like a new column called {column} that holds a {type}.
        alter table {table} add {column} {type}
        Could you put a column {column} of type {type} into {table}?
        new {type} column in {table}: {column}
        The table {table} has no {column} yet. Add it as {type}.
        Type {type}, name {column}, table {table}: add that column.
        Please extend {table} by {column} ({type}).
        We also have to store {column} in {table} from now on, as {type}.

        drop_column delete_column remove_column
        = Remove a column from a table. | Deletes a column with all that is in it. | Alter a table: one column less.
        - table|table_name: table; column|name|column_name: oddword
        Remove the column {column} from {table}.
        drop {column} from {table}
        Nobody uses {column} in the table {table}, delete that column.
        The table {table} can lose its column {column}.
        alter table {table} drop column {column}
        Please delete {column}, a column of {table}.
        We may not keep {column} any longer, so throw that column out of {table}.
        In {table} there is a column {column} too many.
        Take the column {column} out of the table {table}.
        get rid of column {column} ({table})

        rename_column change_column_name
        = Rename a column of a table. | Gives a column another name. | Changes the name of a column, not its type.
        - table|table_name: table; old_name|old|column|from: oddword; new_name|new|to: oddword
        Rename {old_name} to {new_name} in the table {table}.
        In {table}, the column {old_name} should be called {new_name}.
        {table}: {old_name} -> {new_name}, just the name
        The column {old_name} of {table} needs a better name: {new_name}
        Call it {new_name} instead of {old_name} in {table}.
        I want {new_name} as the name of the column that {table} has as {old_name}.
        alter table {table} rename {old_name} to {new_name}
        Would you change the column name {old_name} into {new_name}? The table is {table}.
        {old_name} is misspelled in {table}, it should be {new_name}.
        column {old_name} in {table} gets the name {new_name}

        export_table export_data download_table dump_table
        = Export a table to a file of a given format. | Saves the rows of a table as a file.
        = Write a table out. Not for reading files in.
        - table|name|source: table; format|file_type|as: =csv,json,xlsx,xml; +limit|rows|max_rows: #10-9000
        Export {table} as {format}.
        Give me {table} in {format}.
        I'd like to have all of the table {table} as a {format} file.
        {table} out as {format} please
        Save the table {table} in the format {format}.
        Export the first {limit} rows of {table} as {format}.
        My boss wants {table}, and she can only open {format}.
        as {format}: {table}, {limit} rows
        Can I download the table {table} as {format}?
        Not everything, {limit} rows of {table} are enough, in {format}.
        dump {table} ({format})

        import_file import_csv load_file load_data
        = Read a file into a table. | Imports rows from a file. | Loads data from a file; the table must exist.
        - file|path|filename|source: file; table|into|target: table
        Import {file} into the table {table}.
        Load {file} into {table}.
        {file} -> {table}, import
        The rows of {file} belong into {table}, read them in.
        Please fill {table} with what is in {file}.
        Into the table {table}, please read the file {file}.
        Could you take the data in {file} over to {table}?
        {table} is empty. All its data are in {file}, load them.
        I have got {file} from {~name}. It should go to the table {table}.
        Put what {file} holds in {table}.

        create_index add_index index_column
        = Create an index on a column. | Makes searches in a column faster. | Builds an index for a table.
        - table|table_name: table; column|field: oddword; +unique: flag
        Create an index on {column} in {table}.
        Searching {table} by {column} is slow, so add an index.
        index {table}({column})
        Put an index on the column {column} of {table}.
        {table} should have an index for {column}.
        Can you make lookups by {column} in {table} faster with an index?
        We look for {column} in {table} all day long. Index it, please.
        There is no index on {column} in {table} yet, build one.
        An index for {table}, column {column}.
        On {column}, build an index. The table is {table}.

        give_access allow_access add_permission
        = Give a user a right to a database. | Opens a database to somebody, at a level.
        = Lets somebody read, write or manage a database.
        - user|username|person: name; database|db|resource: table
        - level|role|permission: =read:read/reading,write:write/writing,admin:admin/full
        Give {user} {level} access to {database}.
        {user} needs {level} access to the database {database}.
        allow {level} on {database} to {user}
        For {database}, {user} should get {level} rights.
        {user} can't do anything in {database}. Give them {level} access.
        Could you let {user} into {database} with {level} rights?
        {level} access, please: {user}, database {database}
        Let {user} have {level} rights in {database}, as {~name} has.
        {~name} asks for {user}: {level} access to {database}
        {user} starts today and has to have {level} access to {database}.

        revoke_access remove_access take_access deny_user
        = Take the access to a database away from a user. | Revokes all rights of somebody.
        = Shut a user out of a database.
        - user|username|person: name; database|db|resource: table
        Take {user}'s access to {database} away.
        {user} must not see {database} any more.
        revoke {user} on {database}
        {user} leaves the company, so no more access to the database {database}.
        Remove all rights of {user} in {database}.
        Please shut {user} out of {database}.
        Why does {user} still get into {database}? Stop that.
        {database} is none of {user}'s business any longer.
        no access to {database} for {user} from now on
        I don't want {user} in the database {database} again.
        """,
    ),
    _family(
        "sales",
        "create_user get_user place_order search_products query_sales create_invoice update_price "
        "apply_coupon create_event list_events book_appointment log_workout add_expense assign_ticket "
        "write_review",
        """create_lead add_lead new_lead new_prospect
        = Add a possible customer. | Creates a lead in the CRM. | Notes somebody who may buy from us.
        - name|contact|person: name; company|organisation|firm: company; +phone|number: phone
        New lead: {name} from {company}
        {name} of {company} might buy from us, put that in the CRM.
        I met {name}, who works for {company}. Add a lead.
        Please create a lead for {company}, the contact is {name}.
        lead {name} / {company} / {phone}
        At {company} there's a {name} who is interested in our products.
        Add {name} ({company}) to our possible customers.
        {company} could become a customer. Talk to {name} there, phone {phone}. Make a lead of it.
        Could you note a new prospect, {name} at {company}?
        add lead, company {company}, contact {name}

        update_deal_stage move_deal set_stage change_deal
        = Move a deal to another stage. | Updates how far a deal has come. | Sets the stage in the sales pipeline.
        - deal|customer|opportunity: company; stage|status|to: =new,contacted,offer,negotiation,won,lost
        Move the deal with {deal} to {stage}.
        deal {deal}: {stage}
        The stage of the {deal} deal is now {stage}.
        Set the deal with {deal} to "{stage}".
        Please mark the {deal} deal as {stage}.
        In the pipeline, the deal with {deal} belongs under {stage}.
        {stage} is where we are with the {deal} deal.
        Could you update the {deal} deal? Its stage is {stage}.
        change stage -> {stage} for the deal with {deal}
        {~name} says that our deal with {deal} has reached the stage {stage}.

        create_quote make_offer new_quote prepare_quote
        = Write a quote for a customer. | Prepares an offer for a number of products.
        = Tells a customer in writing what something will cost.
        - customer|company|client: company; product|item|article: items; quantity|count|amount: #2-900
        Make {customer} an offer for {quantity} {product}.
        Quote for {customer}: {quantity} {product}
        {customer} wants to know what {quantity} {product} would cost. Prepare a quote.
        Please write a quote over {quantity} {product} for {customer}.
        offer: {quantity} x {product} to {customer}
        {quantity} {product}, that is what {customer} would like an offer for.
        Could you prepare an offer on {product} for {customer}? They think of {quantity}.
        Last year it was {~high}, this time {customer} asks for a quote on {quantity} {product}.
        I promised {customer} a written offer for {quantity} {product}.
        {product}, {quantity} of them: {customer} needs our quote

        schedule_demo book_demo plan_demo product_demo
        = Plan a demonstration for a customer. | Schedules a product demo on a day.
        = Book a presentation of our product.
        - company|customer|client: company; date|day|when: day; +time|at: clock
        Schedule a demo for {company} on {date}.
        {company} wants to see our product, {date} would be good.
        demo {company} {date}
        On {date}, we show {company} what our software can do. Plan a demo.
        Please book a demo with {company} for {date} at {time}.
        Can {company} get a demonstration on {date}?
        Demo: {company}, {date}, {time}
        I'd like to present our product to {company} on {date}.
        {company} has asked for a demo at {time} on {date}.
        not {~day}, {date} is when {company} has time for a demo

        log_call record_call note_call add_call
        = Note a phone call with a customer. | Logs a call that has taken place, with its length.
        = Call record. Does not phone anybody.
        - customer|client|contact: name; minutes|duration|length: minutes; +summary|notes: topic
        Log a call with {customer}, {minutes} minutes.
        I talked to {customer} on the phone for {minutes} minutes, note that.
        call w/ {customer} {minutes} min, put it in the crm
        {minutes} minutes on the phone with {customer}. Please record it.
        Write down that {customer} and I phoned for {minutes} minutes about {summary}.
        My call with {customer} lasted {minutes} minutes. Put it on record.
        Record: phoned {customer}, {minutes} minutes, {summary}
        I just hung up after {minutes} minutes with {customer}, log it.
        Please note a call of {minutes} minutes with {customer}.
        It felt like hours, but my call with {customer} took {minutes} minutes. Log it.

        set_discount give_discount customer_discount
        = Set the discount of a customer. | Gives a customer some percent off every order.
        = Changes the terms of a customer.
        - customer|client|company: company; percent|discount|rate: #2-40
        Give {customer} a discount of {percent} percent.
        {customer} gets {percent}% off from now on.
        discount {customer} {percent} %
        From now on {customer} pays {percent} percent less.
        Set the discount of {customer} to {percent} percent, please.
        They wanted 50, we agreed on {percent} percent off for {customer}.
        {percent} percent discount for {customer}
        Our friends at {customer} deserve {percent} percent off.
        Could you take {percent} percent off for {customer} in future?
        {customer} bargained hard: {percent} percent discount.

        mark_invoice_paid invoice_paid settle_invoice
        = Mark an invoice as paid. | Notes that the money for an invoice has come in.
        = Closes an open invoice. Sends no money.
        - invoice|number|invoice_number: code; +date|paid_on: day
        Mark invoice {invoice} as paid.
        The money for invoice {invoice} has arrived.
        invoice {invoice} = paid
        {~company} has paid {invoice}, so set that invoice to paid.
        Invoice {invoice} was paid on {date}, please note that.
        Please settle invoice {invoice} in the books, the customer paid.
        {invoice} is no longer an open invoice, we got the money.
        We can tick off invoice {invoice}, it's been paid.
        They paid! It was invoice {invoice}.
        set {invoice} to paid, date {date}

        send_payment_reminder dunning remind_customer payment_reminder
        = Remind a customer of an unpaid invoice. | Sends a payment reminder. | Asks a customer for money that is due.
        - customer|client|company: company; invoice|number|invoice_number: code
        Remind {customer} to pay invoice {invoice}.
        {customer} hasn't paid {invoice} yet. Send a payment reminder.
        payment reminder to {customer}, invoice {invoice}
        Invoice {invoice} is overdue, tell {customer}.
        We are still waiting for the money of {customer} for {invoice}. Ask them.
        Please ask {customer} politely to pay {invoice}.
        When will {customer} pay {invoice}? Give them a nudge.
        {invoice} is unpaid since March. Send a reminder to {customer}, please.
        Tell {customer} that we want our money for invoice {invoice}.
        dun {customer} re {invoice}

        list_unpaid_invoices open_invoices get_unpaid overdue_invoices
        = List the unpaid invoices of a customer. | Returns invoices that are not paid.
        = What a customer still owes us.
        - customer|client|company: company
        Which invoices has {customer} not paid?
        Unpaid invoices of {customer}?
        What does {customer} still owe us?
        Show me the open invoices of {customer}.
        Has {customer} paid all its bills?
        open bills {customer}
        How much money are we still to get from {customer}?
        Is anything of {customer} overdue?
        List everything that {customer} has not paid yet.
        Before we deliver again: are there unpaid invoices of {customer}?
        """,
    ),
    _family(
        "personnel",
        "hire_employee request_vacation get_salary create_user delete_user get_contact get_user "
        "create_event list_events book_appointment cancel_event find_job assign_ticket get_holidays "
        "transfer_money enroll_student order_medicine find_doctor",
        """log_sick_day report_sick sick_note call_in_sick
        = Note that somebody is ill on a day. | Records a sick day of an employee. | Sick leave, not vacation.
        - employee|name|person: name; date|day|when: day
        {employee} is ill on {date}.
        {employee} called in sick for {date}.
        sick: {employee}, {date}
        Please note that {employee} is not well and stays at home on {date}.
        On {date}, {employee} has a fever and won't come.
        {employee} has the flu. Put down {date} as a sick day.
        Could you enter a sick day for {employee}? It is {date}.
        {date}: no {employee}, doctor's orders
        {~name} told me that {employee} is sick and can't work on {date}.
        Record a day of illness on {date} for {employee}.

        approve_leave allow_leave accept_vacation
        = Approve the vacation somebody has asked for. | Says yes to a request for leave.
        = Lets an employee have days off.
        - employee|name|person: name; +comment|message: phrase
        Approve {employee}'s vacation.
        {employee} can have the days off.
        leave of {employee}: ok
        Say yes to {employee}'s request for time off.
        I'm fine with the holiday {employee} asked for, allow it.
        Please allow {employee} the leave.
        {employee} may go on vacation. Add the comment "{comment}".
        {employee} wants some days off. That is fine with me!
        No objections to {employee} taking leave.
        yes to the vacation request of {employee}, no to nobody

        reject_leave deny_leave refuse_vacation
        = Refuse the vacation somebody has asked for. | Says no to a request for leave, with a reason.
        = Turns a leave request down.
        - employee|name|person: name
        - reason|why|comment: ~too many are away,the project is late,not enough notice,end of the year,we open a shop
        Refuse {employee}'s vacation, the reason: {reason}
        {employee} can't have leave: {reason}
        No vacation for {employee}. Reason: {reason}
        leave {employee} denied ({reason})
        Please turn down the leave of {employee} with the reason "{reason}".
        Say no to {employee}'s request for time off, because {reason}.
        I'm sorry for {employee}, but the holiday is not possible. The reason is: {reason}
        Because {reason}, {employee} can't get any leave.
        Tell the system that the vacation of {employee} is refused: {reason}
        {employee} asked for days off; not this time. {reason}, write that as the reason.

        clock_in start_shift punch_in check_in_worker
        = Note when somebody starts work. | An employee comes to work. | Start of a working day.
        - employee|name|person: name; time|at|start: clock
        Clock {employee} in at {time}.
        {employee} started work at {time}.
        in: {employee} {time}
        {employee} forgot to punch in, it was {time} when the shift began.
        Please note that {employee} came to work at {time}.
        The working day of {employee} began at {time}.
        At {time}, {employee} arrived and sat down to work.
        {time}, {employee} is at the desk. Enter it as the start.
        {employee} has been working since {time}, clock that.
        start of shift for {employee}: {time}

        clock_out end_shift punch_out check_out_worker
        = Note when somebody stops work. | An employee goes home. | End of a working day.
        - employee|name|person: name; time|at|end: clock
        Clock {employee} out at {time}.
        {employee} went home at {time}.
        out: {employee} {time}
        {employee} stopped working at {time}, note that.
        Please note that {employee} left work at {time}.
        The working day of {employee} ended at {time}.
        At {time}, {employee} switched off the computer and left.
        {employee} forgot to punch out, work was over at {time}.
        {time} was the end of {employee}'s shift.
        end of shift for {employee}: {time}

        swap_shift trade_shifts exchange_shift
        = Swap a shift between two people. | One employee takes over the shift of another one.
        = Changes the rota for a day.
        - employee|from|person: name; colleague|replacement|to|with: name; date|day|when: day
        {colleague} takes over {employee}'s shift on {date}.
        Swap the shift: on {date}, {colleague} works instead of {employee}.
        {employee} can't work {date}, {colleague} steps in.
        rota {date}: {employee} out, {colleague} in
        On {date}, let {colleague} do what {employee} was to do.
        Please give {employee}'s shift on {date} to {colleague}.
        {colleague} will stand in for {employee} on {date}, change the rota.
        Not {employee} but {colleague} is on duty on {date}.
        {employee} has a wedding on {date}. {colleague} does the shift.
        Can {employee} hand the {date} shift over to {colleague}?

        log_hours submit_timesheet book_hours track_time
        = Book working hours on a project. | Adds hours to a timesheet.
        = Notes how long somebody has worked on something.
        - project|task|job: oddword; hours|duration|time: few; +date|day: day
        Book {hours} hours on {project}.
        I worked {hours} hours on the project {project}.
        {project} {hours}h
        Put {hours} hours for {project} on my timesheet.
        It took me {hours} hours to finish my part of {project}, please book them.
        On {date} I spent {hours} hours on {project}.
        {hours} hours of mine go to the project {project}.
        Timesheet: {project}, {hours} hours, {date}
        Please enter {hours} working hours for {project}.
        My time for {project}: {hours} hours

        promote_employee give_promotion change_position
        = Give an employee a higher position. | Promotes somebody. | Changes the job title of somebody who works here.
        - employee|name|person: name
        - position|title|role: ~team leader,head of sales,senior engineer,manager,director,foreman,chief cook
        Promote {employee} to {position}.
        {employee} becomes {position}.
        new {position}: {employee}
        {employee} deserves to be {position}, make it so.
        As of today, {employee} is our {position}.
        Please change the position of {employee} to {position}.
        Our new {position} is {employee}, congratulations!
        {employee} moves up: {position}
        Not {~name} but {employee} gets the post of {position}.
        The board has decided that {employee} will be {position}.

        schedule_interview plan_interview book_interview invite_candidate
        = Plan an interview with a candidate. | Schedules a talk with somebody who wants a job.
        = Job interview on a day.
        - candidate|applicant|name: name; position|job|role: job; date|day|when: day
        Schedule an interview with {candidate} for the {position} job on {date}.
        {candidate} wants to be our {position}, interview on {date}.
        interview {candidate} ({position}) {date}
        On {date}, {candidate} comes for the job as {position}. Plan the interview.
        Please plan a job interview with {candidate} on {date}, position: {position}
        We need a {position} and like {candidate}. Talk on {date}?
        For the post of {position}, see {candidate} on {date}.
        Could {candidate} come on {date} for an interview? It's the {position} job.
        {date}, job interview, {position}, {candidate}
        Invite {candidate} for {date} to talk about working as {position} for us.

        give_bonus pay_bonus add_bonus
        = Give an employee a bonus. | Pays somebody an extra amount once. | Bonus on top of the salary.
        - employee|name|person: name; amount|sum|euros: #1-60*50; +reason|why: topic
        Give {employee} a bonus of {amount} euros.
        {employee} gets {amount} euros extra this month.
        bonus {employee} {amount}
        {employee} did great work. A bonus of {amount} euros, please.
        Please pay {employee} {amount} euros on top of the salary.
        {amount} euros bonus for {employee}, for the work on {reason}.
        We thank {employee} with {amount} euros extra.
        I promised {employee} a bonus, {amount} euros.
        For {reason}, {employee} has earned a bonus of {amount} euros.
        Let {employee} have {amount} euros as a bonus.
        """,
    ),
    _family(
        "bank",
        "transfer_money get_balance add_expense set_budget loan_payment calculate_tip convert_currency "
        "get_exchange_rate create_invoice refund_order",
        """open_account new_account create_account open_bank_account
        = Open a bank account of a kind. | Opens a new account for the customer.
        = Create an account; the first payment may be given.
        - kind|type|account_type: =savings:savings,checking:current/checking,joint:joint,business:business
        - +deposit|first_payment|amount: #1-90*50
        Open a {kind} account for me.
        I'd like to have a {kind} account.
        new {kind} account pls
        I don't have a {kind} account yet, but I want one.
        Could you open a {kind} account with {deposit} euros in it?
        Get me a {kind} account. I'll start with {deposit}.
        How do I get a {kind} account at your bank? Just open one.
        We have just married and need another account, a {kind} one.
        I want to open one more account, make it a {kind} account, please.
        {kind} account, first payment {deposit} euros

        close_account end_account cancel_account
        = Close a bank account. | Closes an account for good.
        = Ends an account; the rest of the money goes to another one.
        - account|account_number|number: phone; +rest_to|transfer_to: account
        Close the account {account}.
        I don't need my account {account} any more.
        account {account}: close it
        Please shut down account {account} for good.
        I have too many accounts, {account} can go.
        Close account {account} and put the rest into my {rest_to} account.
        My old account {account} costs me money each month. End it.
        Could you cancel the account with the number {account}?
        I'd like to part with account {account}.
        Account {account} is to be closed, what is left goes to the {rest_to} account.

        set_card_limit card_limit change_limit limit_card
        = Set the limit of a card. | Changes how much may be paid with a card.
        = Card settings: highest amount per day or month.
        - card|card_number|last_digits: #1000-9999; limit|amount|max: #1-60*50; +period|per: =day,month
        Set the limit of card {card} to {limit} euros.
        With card {card}, nobody should be able to pay more than {limit}.
        card {card} limit {limit}
        I want at most {limit} euros a {period} to go through my card {card}.
        My son has card {card}. {limit} euros a {period} is all he may spend with it.
        Could the card ending in {card} have a limit of {limit}?
        {limit} euros is enough for card {card}, set that as its limit.
        The limit of my card {card} should go from 500 to {limit} euros.
        Limit: {limit} per {period}, card: {card}
        Please change the limit for {card}, I'd like {limit}.

        create_standing_order standing_order regular_payment repeat_payment
        = Pay somebody every month. | Creates a standing order. | Repeats a payment each month on the same day.
        - payee|to|recipient|name: name; amount|sum|euros: amount; day_of_month|day|on_day: #1-28
        Pay {payee} {amount} euros on day {day_of_month} of every month.
        Every month on the {day_of_month}., send {amount} euros to {payee}.
        standing order: {payee}, {amount}, day {day_of_month}
        {payee} should get {amount} euros each month, always on day {day_of_month}.
        From now on I pay {payee} {amount} euros a month. Day {day_of_month} suits me.
        Set up a monthly payment of {amount} to {payee} for day {day_of_month}.
        My rent goes to {payee}: {amount} euros monthly, day {day_of_month} of the month.
        On day {day_of_month}, month by month, {amount} euros to {payee}, please.
        I keep forgetting to pay {payee}. {amount} euros, each month, day {day_of_month}.
        monthly: {amount} to {payee} (day {day_of_month})

        cancel_standing_order stop_regular_payment end_standing_order
        = Stop a monthly payment. | Cancels the standing order to somebody. | Ends what is paid each month.
        - payee|to|recipient|name: name
        Cancel the standing order to {payee}.
        Stop paying {payee} every month.
        no more monthly money to {payee}
        {payee} should get nothing from me next month or later.
        I have moved out, so end the monthly payment to {payee}.
        Please stop the standing order for {payee}.
        I don't want to pay {payee} each month any longer.
        End my monthly payments to {payee}.
        {payee} gets money every month, that has to stop.
        My standing order for {payee}, please delete it.

        list_transactions get_transactions show_payments account_history
        = List the payments of an account in a month. | Returns transactions.
        = Everything that went in or out of an account.
        - account|from|name: account; month|period|in: month
        Show me the payments of my {account} account in {month}.
        What did I spend in {month} from the {account} account?
        {account} account, {month}, all transactions
        List what happened on the {account} account in {month}.
        I'd like to see each payment that the {account} account had in {month}.
        In {month} something odd left my {account} account. Let me see the list.
        Where did my money go in {month}? I mean the {account} account.
        transactions {month} {account}
        Please list {month} for the {account} account.
        Which payments were there in {month}, on the {account} account?

        report_fraud dispute_payment flag_transaction
        = Report a payment that the customer did not make. | Disputes a transaction.
        = Fraud report with the number of the payment.
        - transaction|payment|transaction_id|id: code; +amount|sum: amount
        I did not make the payment {transaction}.
        {transaction} is fraud!
        Report transaction {transaction}, it wasn't me.
        Somebody else used my card for {transaction}.
        I have never seen the shop of payment {transaction}. Report it, please.
        Payment {transaction} over {amount} euros is not mine.
        There's a payment of {amount} euros, number {transaction}, that I know nothing about.
        Please dispute {transaction}.
        I was robbed by whoever made transaction {transaction}.
        my statement shows {transaction}, i never bought that

        split_bill divide_bill share_costs
        = Split a bill between people. | Divides an amount by a number of persons. | What each has to pay.
        - amount|total|bill: amount; people|persons|count: few; +tip|tip_percent: #5-20
        Split {amount} euros between {people} people.
        We are {people} and the bill is {amount}. What does each pay?
        bill {amount}, {people} of us
        {amount} euros for all {people} of us, how much is it for one?
        How much does everyone pay if {people} friends share {amount} euros?
        {people} people ate for {amount} euros, share it out fairly.
        Divide the bill of {amount} by {people} people, with {tip} percent tip.
        Dinner was {amount} for {people} people. We tip {tip} percent. What is my part?
        Each of us {people} pays the same; it is {amount} altogether.
        Please divide {amount} among {people} people.

        find_atm cash_machine nearest_atm atm_locator
        = Find a cash machine. | Where one can get cash in a city. | Locates ATMs.
        - city|location|place: city; +bank|network: company
        Where is a cash machine in {city}?
        I need cash in {city}.
        atm {city}
        I'm in {city} without a coin. Where can I draw money?
        Is there an ATM of {bank} in {city}?
        Nobody takes cards in {city}! Where do I get notes?
        Show me cash machines in {city}.
        Which ATM is near me in {city}?
        Please find a cash machine in {city}.
        We've run out of cash here in {city}, where's a machine?
        """,
    ),
    _family(
        "travel",
        "book_flight get_flight_status book_hotel find_train train_departures plan_trip get_attractions "
        "book_appointment cancel_event country_info start_coffee find_object rent_car call_taxi "
        "get_directions get_distance",
        """check_in_flight online_check_in checkin get_boarding_pass
        = Check in for a flight. | Checks a passenger in and returns the boarding pass. | Online check-in.
        - booking|reservation|booking_code: code
        - last_name|surname|name: ~Weber,Silva,Novak,Taylor,Rossi,Singh,Hansen,Moreau,Keller,Park
        Check me in, booking {booking}, name {last_name}.
        I'm {last_name} and my booking is {booking}. I need the boarding pass.
        check in {booking} {last_name}
        Boarding pass for {last_name}, please, the code is {booking}.
        My flight leaves tomorrow. {booking}, {last_name}: check in, please.
        Do the check-in for booking {booking}. The passenger is called {last_name}.
        Could you check in Mrs {last_name} with the booking {booking}?
        I want to check in online. Surname {last_name}, code {booking}
        {booking} is my reservation, {last_name} my name, now let me check in.
        Passenger {last_name} ({booking}) would like to check in.

        choose_seat select_seat pick_seat reserve_seat
        = Choose a seat on a flight. | Reserves a seat for a booking. | Select where to sit in the plane.
        - booking|reservation|booking_code: code; seat|seat_number|place: seat
        I'd like seat {seat} on booking {booking}.
        Seat {seat} for {booking}, please.
        {booking}: sit in {seat}
        Can I sit in {seat}? My booking is {booking}.
        Give me {seat}, the booking code is {booking}.
        My legs are long, so put me in {seat}. Booking {booking}
        Choose seat {seat} for my reservation {booking}.
        I don't want {~seat}, I want {seat}. Booking: {booking}
        For booking {booking}, reserve the seat {seat}.
        we want {seat} (booking {booking})

        add_baggage buy_luggage extra_bag add_luggage
        = Add bags to a booking. | Buys luggage for a flight. | More suitcases for a passenger.
        - booking|reservation|booking_code: code; pieces|bags|count: #1-4; +weight|kilos: #15-32
        Add {pieces} bags to booking {booking}.
        I have {pieces} suitcases to take along, booking {booking}.
        {booking} + {pieces} bags
        My booking {booking} is without luggage. Add {pieces} pieces.
        {pieces} more suitcases for {booking}, please.
        We bought too much! Put {pieces} bags on the booking {booking}.
        Luggage for {booking}: {pieces} pieces of {weight} kilos
        On booking {booking}, I want to check {pieces} bags of {weight} kilos each.
        Can I bring {pieces} suitcases? The code is {booking}.
        baggage, booking {booking}, pieces: {pieces}

        change_flight rebook_flight move_flight
        = Move a flight to another day. | Changes the date of a booked flight. | Rebooks. Does not cancel.
        - booking|reservation|booking_code: code; date|new_date|day: day
        Move my flight {booking} to {date}.
        I can't fly on {~day}. Rebook {booking} to {date}.
        {booking}: fly on {date} instead
        Put booking {booking} on another day, {date}.
        I'd rather fly on {date}, my booking is {booking}.
        Change the date of {booking}, {date} is better.
        Could we leave on {date} instead? Booking {booking}
        My meeting has been moved, so the flight {booking} must be on {date}.
        Please rebook {booking}. New day: {date}
        For {booking} I need a flight on {date} and not on {~day}.

        cancel_flight cancel_booking cancel_trip
        = Cancel a booked flight. | Cancels a booking for good. | Gives a flight ticket back. Not for another date.
        - booking|reservation|booking_code: code
        Cancel my flight, booking {booking}.
        I won't fly. The booking is {booking}.
        cancel {booking}
        I have to stay at home, so please cancel the flight with the code {booking}.
        Give the ticket {booking} back, I am not flying.
        Booking {booking} is no longer needed, we stay here.
        We're not going anywhere: cancel flight {booking}.
        I'm ill and can't take the plane. It was booking {booking}.
        Please cancel the reservation {booking} for my flight.
        flight {booking}, no thanks, not any more

        extend_stay prolong_stay add_nights
        = Stay longer in a hotel. | Extends a hotel booking by some nights. | Adds nights to a reservation.
        - booking|reservation|booking_code: code; nights|more_nights|count: few
        I'd like to stay {nights} more nights, booking {booking}.
        Extend my hotel booking {booking} by {nights} nights.
        {booking} +{nights} nights
        It's so nice here! {nights} nights more, please, the booking is {booking}.
        Hotel booking {booking}: can we keep the room for another {nights} nights?
        We don't want to leave the hotel yet. Add {nights} nights to {booking}.
        Please prolong our stay ({booking}) by {nights} nights.
        {nights} extra nights for {booking}
        The snow keeps us in the hotel for {nights} nights longer. Booking {booking}
        For booking {booking}, add {nights} nights at the end.

        get_visa_rules visa_required visa_check entry_rules
        = Whether a visa is needed. | Tells the visa rules for citizens of one country who travel to another.
        = Entry rules by passport.
        - passport|nationality|citizen_of: country; destination|country|to: country
        Do I need a visa for {destination} with a passport of {passport}?
        I'm from {passport} and travel to {destination}. Visa?
        visa {destination}, passport {passport}
        Which visa does somebody from {passport} need in {destination}?
        Can people with a passport of {passport} enter {destination} just like that?
        My passport is from {passport}. May I go to {destination} without a visa?
        To {destination} as a citizen of {passport}: do I need papers?
        We want to see {destination}. We are citizens of {passport}. What are the entry rules?
        Tell me the visa rules of {destination} for citizens of {passport}.
        A friend from {passport} visits {destination}. Is a visa needed?

        book_ferry ferry_ticket reserve_ferry
        = Book a ferry between two ports. | Reserves a place on a ship. | Ferry tickets, with or without a car.
        - origin|from|port: city; destination|to|target: city; date|day|when: day; +with_car|car: ?a car/no car
        Book the ferry from {origin} to {destination} on {date}.
        I want to go from {origin} to {destination} by ship on {date}.
        ferry {origin} - {destination} {date}
        On {date}, bring me across from {origin} to {destination} with the ferry.
        To {destination} from {origin} by boat, {date}, please.
        A ferry ticket for {date}: {origin} to {destination}
        We take the ferry in {origin} on {date} and get off in {destination}. We have {with_car}.
        Ferry to {destination}, starting from {origin} on {date}, with {with_car}
        I hate planes. Is there a boat to {destination} from {origin} on {date}? Book it.
        Please reserve a place on the ship to {destination} that leaves {origin} on {date}.

        report_lost_luggage lost_bag missing_luggage file_luggage_claim
        = Report a bag that did not arrive. | Files a claim for lost luggage. | Missing suitcase after a flight.
        - flight|flight_number: flight
        - description|bag|looks: ~a black suitcase,a red rucksack,a blue sports bag,a brown bag,a guitar case
        My luggage of flight {flight} is missing, {description}.
        Flight {flight} has arrived, but not my bag. It is {description}.
        lost: {description}, flight {flight}
        I came with {flight} and wait for {description} in vain.
        Where is my bag? {description}, I flew with {flight}.
        I miss {description}, it was on the flight {flight}.
        Please report lost luggage: {description} from flight {flight}
        I stood at the belt for an hour, {description} did not come. Flight {flight}
        Everybody from {flight} has their bags, only I don't. Mine is {description}.
        The airline lost {description} of mine on flight {flight}.
        """,
    ),
    _family(
        "health",
        "log_workout log_meal log_water log_weight bmi get_steps find_doctor order_medicine "
        "book_appointment set_alarm set_timer cancel_event create_event list_events get_grade "
        "get_temperature days_until",
        """log_blood_pressure add_blood_pressure record_bp
        = Note a blood pressure. | Records the upper and lower value. | Blood pressure diary.
        - systolic|upper|high: #100-180; diastolic|lower|low: #55-98; +time|at: clock
        My blood pressure is {systolic} over {diastolic}.
        blood pressure {systolic}/{diastolic}
        Note {systolic} to {diastolic} as my blood pressure.
        I measured {systolic} over {diastolic} at {time}.
        The lower value is {diastolic} and the upper one {systolic}. Write my blood pressure down.
        Doctor wants a diary of my blood pressure: today {systolic} over {diastolic}
        Put down {systolic} and {diastolic}, the machine on my arm says.
        At {time} my blood pressure was {systolic}/{diastolic}.
        BP {systolic}/{diastolic}, thanks
        My pressure was {diastolic} below and {systolic} above, please record it.

        log_sleep record_sleep add_sleep sleep_diary
        = Note how long somebody slept. | Records hours of sleep. | Sleep diary with an opinion of the night.
        - hours|duration|length: #3-12; +quality|rating: =good:good/well,bad:bad/badly
        I slept {hours} hours.
        {hours} hours of sleep last night
        Note that I was asleep for {hours} hours.
        slept {hours}h
        My night had {hours} hours. Put it in my sleep diary.
        I went to bed at eleven and got {hours} hours of sleep.
        Write down {hours} hours, that's how long I slept.
        Only {hours} hours last night, the baby cried. Record my sleep.
        Please add last night to my sleep diary, {hours} hours.
        I lay in bed for 10 hours, but I slept {hours} of them. Log that.

        log_mood record_mood add_mood mood_diary
        = Note how somebody feels. | Records the mood of the day. | Mood diary; one word a day.
        - mood|feeling|state: =happy:happy,sad:sad,angry:angry,tired:tired,calm:calm; +reason|because: topic
        I feel {mood} today, note it.
        Mood: {mood}
        put {mood} in my mood diary
        I'm {mood}. Please write that down for my diary.
        Today my mood is {mood}, because of {reason}.
        Write into my mood diary that I feel {mood}.
        I am {mood}, {reason} is to blame. Log the mood.
        How do I feel? {mood}, if you want to record it.
        Yesterday I couldn't have said it, but today I'm {mood}. Log my mood.
        log: feeling {mood}

        log_dose take_dose medicine_taken record_medicine
        = Note that a medicine was taken. | Records a dose with its time. | Medicine diary. Does not order anything.
        - medicine|drug|name: medicine; time|at|when: clock; +amount|dose: #1-40*25
        I took {medicine} at {time}.
        {medicine} taken, {time}
        Note that I had my {medicine} at {time}.
        At {time} I took the {medicine}. Write it down.
        Please record {amount} mg of {medicine} at {time}.
        My {medicine} diary: {time}, {amount} mg
        Grandpa had his {medicine} at {time}, put it on the record.
        {time}: {medicine} swallowed
        I've just had my {medicine}, it is {time}. Log the dose.
        Dose of {medicine}, {time}. Log it, please.

        schedule_vaccination book_vaccination get_shot vaccine_appointment
        = Make an appointment for a vaccination. | Schedules a jab against an illness. | Books a vaccination on a day.
        - illness|vaccine|against: ~flu,measles,tetanus,rabies,polio,yellow fever,hepatitis; date|day|when: day
        - +person|patient: name
        I'd like to be vaccinated against {illness} on {date}.
        Vaccination against {illness}, {date}, please.
        {illness} jab {date}
        On {date} I could come for my {illness} vaccination.
        Book a jab against {illness} for {person} on {date}.
        {person} needs protection against {illness}. {date} would be a good day for the shot.
        We travel to hot countries and need shots against {illness}. Does {date} work?
        Can I get the {illness} shot on {date}?
        Against {illness}, please, and on {date}. I mean a vaccination.
        Make an appointment on {date}: vaccination, {illness}

        get_lab_results test_results blood_test lab_report
        = Get the result of a test from the laboratory. | Returns lab results of a patient. | What the lab found.
        - patient|name|person: name; test|kind|which: ~blood sugar,cholesterol,iron,vitamin D,zinc,allergy
        - +date|day: iso
        What did the lab say about {patient}'s {test} test?
        {test} result for {patient}?
        Are the results of {patient} back? It was the {test} test.
        How is {patient}'s {test}? The lab should know by now.
        lab {patient} {test}
        Show me the {test} test of {patient}, please.
        Has the laboratory found anything in the {test} test of {patient}?
        Doctor here: give me {test} of the patient {patient}.
        I need the lab report on {test} for {patient}.
        The {test} test of {patient} from {date}: what came out?

        set_step_goal step_goal change_step_goal
        = Set how many steps to walk a day. | Sets the daily goal of steps. | Changes the target of the step counter.
        - steps|goal|target: #2-30*500
        I want to walk {steps} steps a day.
        Set my goal to {steps} steps.
        goal: {steps} steps
        {steps} steps every day, that's what I'm aiming for now.
        10000 is too many for me, make my daily goal {steps} steps.
        From today on {steps} steps are my target.
        Please change my step goal to {steps}.
        My doctor says {steps} steps a day. Make it my goal.
        Raise the bar to {steps} steps daily.
        Could my target be {steps} steps?

        record_fever log_temperature body_temperature fever_diary
        = Note the body temperature of a person. | Records a fever. | Fever diary for a patient.
        - person|patient|name: name; temperature|degrees|value: fever; +time|at: clock
        {person} has {temperature} degrees of fever, note it.
        {person}: {temperature}
        Note {temperature} degrees for {person}.
        I put the thermometer in {person}'s mouth: {temperature}. Write it down.
        {person}'s temperature was {temperature} at {time}.
        The fever of {person} is at {temperature} degrees, please record it.
        fever {person} {temperature} at {time}
        Write into the diary of {person} that the fever is {temperature}.
        Record {temperature} for {person}, the forehead is hot.
        At {time} I measured {temperature} with {person}.
        """,
    ),
    _family(
        "sport",
        "get_score log_workout log_water book_appointment book_room book_table create_event cancel_event "
        "list_events book_cinema enroll_student get_traffic",
        """book_court reserve_court court_booking
        = Book a court. | Reserves a court for a sport at a time. | Court reservation in the sports hall.
        - sport|game|kind: ~tennis,badminton,squash,basketball,volleyball; date|day: day; time|at|start: clock
        Book a {sport} court on {date} at {time}.
        We want to play {sport} on {date} at {time}. Get us a court.
        {sport} court {date} {time}
        At {time} on {date}, a court for {sport}, please.
        Is there a {sport} court for us on {date}, {time}? Book it.
        {date}, {time}: court for {sport}
        I'm meeting {~name} for a game of {sport}. Court on {date} at {time}, please.
        Reserve us a place to play {sport}, {date}, {time}.
        Could we have a {sport} court at {time}? The day is {date}.
        On {date} I play {sport} and need a court from {time}.

        cancel_court release_court free_court
        = Cancel a court that was booked. | Gives a court back. | Frees a reservation of the sports hall.
        - sport|game|kind: ~tennis,badminton,squash,basketball,volleyball; date|day: day
        Cancel the {sport} court on {date}.
        We can't play {sport} on {date}, give the court back.
        no {sport} court {date}, cancel
        I've hurt my knee. The court for {sport} on {date} can go to somebody else.
        Please free our {sport} court on {date}.
        {date}: we won't need the {sport} court.
        {~name} is ill, so no {sport} on {date}. Cancel the court.
        We booked a court for {sport} on {date}, but have to cancel.
        Take back my reservation of the {sport} court for {date}.
        The {sport} court on {date} should be cancelled.

        join_race sign_up_race enter_race register_runner
        = Sign up for a race. | Enters a runner for a distance. | Race registration by city.
        - city|place|location: city; distance|race|kind: =5k:5k,10k:10k,half:half marathon,marathon:full marathon
        - +runner|name: name
        Sign me up for the {distance} in {city}.
        I want to run the {distance} in {city}.
        {city} {distance}, i'm in
        In {city} there's a {distance}, enter me.
        Register {runner} for the {distance} of {city}.
        Last year I only watched in {city}, this time I run the {distance}. Sign me up.
        Please enter me for the race in {city}, the {distance}.
        {runner} wants to run in {city}: {distance}
        Could I still start in {city}? I'd do the {distance}.
        Put my name down for the {distance} race in {city}.

        record_score enter_result save_score final_score
        = Enter the result of a match. | Saves how many goals the home team and the guests have.
        = Records a final score.
        - home|home_team|team_a: team; away|away_team|team_b|guests: team; home_goals|home_score|goals_a: #0-9
        - away_goals|away_score|goals_b: #0-9
        {home} against {away} ended {home_goals} to {away_goals}, enter it.
        {home} - {away} {home_goals}:{away_goals}
        At home, {home} got {home_goals} goals, the guests from {away} {away_goals}. Record it.
        Enter the result: {home} {home_goals}, {away} {away_goals}
        {away} scored {away_goals} at the ground of {home}, and {home} scored {home_goals}.
        Final score at {home}: the hosts {home_goals}, the visitors {away} {away_goals}. Save that.
        The guests were {away}, who got {away_goals}. {home} at home got {home_goals}. Save the score.
        {home} had {away} as guests, it was {home_goals} to {away_goals}. Save it.
        Save {home_goals} to {away_goals} for the match of {home} against {away}.
        Please note the final whistle: {home} {home_goals}, guests {away} {away_goals}

        substitute_player swap_player change_player
        = Take a player off and bring another one on. | Substitution in a match.
        = Notes who leaves the pitch and who comes on.
        - player_out|off|out: name; player_in|on|in: name; +minute|at_minute: minutes
        Take {player_out} off and bring {player_in} on.
        {player_in} for {player_out}.
        {player_in} comes on, {player_out} goes off
        {player_out} is injured, {player_in} has to play.
        Substitution: out {player_out}, in {player_in}, minute {minute}
        In minute {minute}, {player_in} replaces {player_out}.
        {player_out} is tired. Let {player_in} onto the pitch instead.
        Put {player_in} on the pitch, {player_out} can have a rest.
        I'd like {player_in} to play now. {player_out} sits down.
        {player_out} limps off and {player_in} runs on.

        get_standings league_table standings show_table
        = The table of a league. | Returns the standings: who is first, who is last.
        = Positions of the teams in a league.
        - league|competition|name: ~Premier League,Bundesliga,Serie A,second division,women's league,hockey league
        - +season|year: year
        Who is first in the {league}?
        Show me the table of the {league}.
        {league} table
        Which team leads the {league} at the moment?
        How do the teams stand in the {league}?
        What did the table of the {league} look like in {season}?
        Is our team still last in the {league}?
        I'd like to see the standings of the {league}.
        Top of the {league} in {season}?
        Who would go down in the {league} if it ended today?

        buy_match_ticket match_tickets stadium_tickets
        = Buy tickets for a match. | Orders tickets for a game of a team. | Stadium tickets, by team and number.
        - team|club|name: team; count|tickets|quantity: few; +date|day: day
        Get me {count} tickets for the next match of {team}.
        {count} tickets, {team}
        I'd love to see {team} play, {count} of us.
        We are {count} people and want to go to the match of {team}.
        Buy {count} tickets for {team} on {date}.
        {team} plays on {date}. We need {count} tickets.
        tickets {team} x{count}
        Can you get {count} seats in the stadium when {team} plays?
        My kids adore {team}. Buy us {count} tickets.
        For the game of {team}, {count} tickets, please.
        """,
    ),
    _family(
        "home",
        "turn_on_light turn_off_light set_temperature get_temperature set_light_color lock_door "
        "unlock_door open_blinds close_blinds start_vacuum set_volume get_energy read_sensor set_alarm "
        "cancel_alarm start_coffee water_plants set_timer play_music stop_music get_weather "
        "get_air_quality find_parking",
        """set_fan_speed fan set_fan control_fan
        = Set the speed of a fan. | Controls the fan in a room. | Makes the air move faster or slower.
        - room|where|location: room; speed|level|mode: =low,medium,high,turbo
        Set the fan in the {room} to {speed}.
        Fan {speed} in the {room}.
        {room} fan {speed}
        In the {room}, put the fan on {speed}.
        I want the fan of the {room} on {speed}, not on anything else.
        Please turn the fan in the {room} to {speed}.
        The air in the {room} is bad, so set the fan to {speed}.
        {speed} is right for the fan in the {room}.
        Could the {room} have its fan on {speed}?
        the fan should be {speed} ({room})

        set_humidity humidity humidifier adjust_humidity
        = Set how humid the air in a room should be. | Controls the humidifier. | Air humidity in percent.
        - room|where|location: room; percent|humidity|level: #30-70
        Set the humidity in the {room} to {percent} percent.
        The air in the {room} is too dry, I want {percent} percent of humidity.
        {room} humidity {percent}%
        My guitar needs {percent} percent humidity, it hangs in the {room}.
        In the {room}, {percent} percent of moisture in the air would be good.
        Make the air in the {room} {percent} percent humid.
        My nose is dry. Let the humidifier in the {room} go to {percent} percent.
        Humidifier: {room}, {percent}
        {percent} percent humidity for the {room}, please.
        Could you bring the humidity of the {room} to {percent}?

        arm_alarm alarm_on secure_house activate_alarm
        = Turn the burglar alarm on. | Arms the alarm of the house.
        = Alarm for when people are away, or at home asleep.
        - mode|kind|how: =away:away,home:home,night:night
        Arm the house in {mode} mode.
        Burglar alarm on, mode {mode}.
        alarm: {mode}
        Put the burglar alarm into {mode} mode, please.
        Make the house safe. The mode is {mode}.
        Please arm the alarm system ({mode}).
        We heard of thieves in our street. Set the burglar alarm to {mode}.
        Turn the alarm system on in the mode {mode}.
        {mode} mode for the alarm system
        Could you activate the burglar alarm in its {mode} mode?

        disarm_alarm alarm_system_off deactivate_alarm
        = Turn the burglar alarm off. | Disarms the alarm of the house with a code.
        = Ends the alarm. Needs the secret number.
        - code|pin|number: #1000-9999
        Disarm the burglar alarm, the code is {code}.
        I'm home. {code}, turn that burglar alarm off!
        alarm off {code}
        The siren is howling, and it's only me. Code {code}
        Switch the alarm system off with {code}.
        My secret number is {code}, so let me in without that noise.
        Please deactivate the burglar alarm. PIN: {code}
        {code} is the code, stop the siren.
        It was just the cat. Turn the burglar alarm off, {code}.
        Use {code} to disarm the house.

        open_garage garage_up raise_garage_door
        = Open the garage. | Raises the door of a garage. | Lets a car in or out.
        - garage|which|side: =left:left,right:right
        Open the {garage} garage.
        Let me into the {garage} garage with my car.
        {garage} garage open
        I'm in front of the {garage} garage and it is shut.
        Please raise the door of the {garage} garage.
        I want to drive out of the {garage} garage.
        Could you lift the {garage} garage door?
        My car stands in the {garage} garage and has to get out.
        garage up, the {garage} one
        {~name} is coming with the van, open up the garage on the {garage}.

        close_garage garage_down shut_garage
        = Close the garage. | Lowers the door of a garage. | Shuts the garage behind a car.
        - garage|which|side: =left:left,right:right
        Close the {garage} garage.
        Did I leave the {garage} garage open? Shut it.
        {garage} garage shut
        Lower the door of the {garage} garage, please.
        It rains into the {garage} garage.
        I've parked the car in the {garage} garage, so you can shut the door.
        garage down, the {garage} one
        The {garage} garage stands wide open.
        Could you let the {garage} garage door down?
        We drove off and forgot to shut the garage on the {garage}.

        set_oven preheat_oven oven heat_oven
        = Heat the oven. | Sets the oven to a temperature and a mode. | Preheats the oven for baking.
        - temperature|degrees|heat: #10-26*10; +mode|program: =fan,grill,bottom
        Heat the oven to {temperature} degrees.
        Oven {temperature}
        preheat to {temperature}
        The cake needs {temperature} degrees, get the oven ready.
        I'm about to bake. {temperature} degrees, please.
        Put the oven on {temperature} degrees with {mode}.
        My pizza wants {temperature} degrees. Turn on the oven.
        The oven should be at {temperature} degrees when I come home at 6.
        Set the oven to {mode}, {temperature} degrees.
        Could you make the oven {temperature} degrees hot?

        start_washing wash_laundry washing_machine run_washer
        = Start the washing machine. | Washes clothes with a program. | Laundry at a temperature.
        - program|cycle|kind: =cotton,wool,delicate,jeans; temperature|degrees|heat: =20,30,40,60,90
        - +spin|rpm: #4-14*100
        Wash the {program} at {temperature} degrees.
        Start the washing machine: {program}, {temperature} degrees
        {program} {temperature}
        At {temperature} degrees, please, the {program} program of the washing machine.
        The laundry is in. Program {program}, {temperature} degrees.
        My clothes are dirty. Wash them on {program} at {temperature}.
        Washing machine on {program} with {temperature} degrees and {spin} turns.
        Run the washer at {temperature}, program {program}.
        Could you start the laundry? {temperature} degrees, {program}
        {program} wash, {temperature} degrees, spin at {spin}

        toggle_plug switch_plug set_plug smart_plug
        = Turn a plug on or off. | Switches what is plugged in. | Smart plug; true is on, false is off.
        - device|plug|name: ~printer,radio,fish tank,heater,freezer,charger,toaster,kettle
        - on|state|is_on|enabled: ?on/off
        Turn the plug of the {device} {on}.
        {device} {on}
        Switch {on} the {device}, please.
        The {device} should be {on}.
        I want the plug with the {device} to be {on}.
        Please make sure that the {device} is {on}.
        We're going out. Is the {device} {on}? It should be.
        plug {device}: {on}
        Could you put the plug of the {device} {on}?
        The socket of the {device} has to be {on}.

        charge_car start_charging charge_vehicle
        = Charge the electric car. | Starts charging up to a level. | Loads the battery of the car.
        - percent|level|up_to: #50-100; +by|until|ready_at: clock
        Charge the car to {percent} percent.
        car {percent}%
        I need the car with {percent} percent in its battery.
        Load the battery of the car up to {percent} percent by {by}.
        Tomorrow I have a long drive, so charge it to {percent} percent.
        The car has only 12 percent left. Make it {percent}.
        Please let the car have {percent} percent at {by}.
        By {by} the car should be charged to {percent} percent.
        {percent} percent in the car are enough, start charging.
        Could you charge my electric car until it has {percent} percent?

        run_bath fill_bath bathtub draw_bath
        = Fill the bath. | Lets warm water into the bathtub. | Bath of a temperature in degrees.
        - temperature|degrees|warm: #34-41; +level|fill|percent: #40-90
        Run me a bath of {temperature} degrees.
        I'd like a bath at {temperature} degrees.
        bath {temperature}
        I ache all over, a hot tub with {temperature} degrees would be heaven.
        Fill the bathtub, {temperature} degrees, please.
        Let water into the bath, {temperature} degrees.
        The children need a bath. {temperature} degrees is right for them.
        Fill the tub to {level} percent with water of {temperature} degrees.
        Make the bath water {temperature} degrees warm.
        {temperature} degrees in the tub, {level} percent full

        set_scene activate_scene room_scene start_scene
        = Start a scene for the whole house. | Sets light and sound for an occasion at once.
        = Scenes are stored settings of the house.
        - scene|name|mood: =movie,party,dinner,reading,sleep
        Start the {scene} scene.
        Scene: {scene}
        I want the house in its {scene} scene.
        {scene} scene now
        Put everything to the {scene} scene, please.
        Guests are at the door. Use the scene {scene}.
        Please switch the whole house to the scene for {scene}.
        The {scene} scene would be nice now.
        Could you activate {scene}, the scene?
        change the scene to {scene}
        """,
    ),
    _family(
        "media",
        "play_music stop_music next_song play_video change_channel set_volume get_movie_info get_lyrics "
        "identify_song set_timer set_alarm set_language find_book borrow_book renew_book get_recipe "
        "get_showtimes book_cinema",
        """create_playlist new_playlist make_playlist
        = Create an empty playlist. | Makes a new list of songs. | A new playlist with a name; songs are added later.
        - name|title|playlist: event; +public|is_public: flag
        Create a playlist called {name}.
        new playlist {name}
        I need a list of songs for later, call it {name}.
        Make a playlist with the name {name}.
        There's no playlist {name} yet, please make one.
        Could you start a fresh playlist, {name}?
        A new playlist, please. It's for our {name}, so that is its name.
        I'd like a playlist of my own named {name}.
        Set up an empty playlist and name it {name}.
        playlist: {name} (new)

        add_to_playlist playlist_add add_song put_in_playlist
        = Add a song to a playlist. | Puts a song into a list. | One more song for a playlist that exists.
        - song|title|track: title; playlist|list|to: event
        Add {song} to the playlist {playlist}.
        Put {song} into my playlist {playlist}.
        {song} -> playlist {playlist}
        The playlist {playlist} lacks {song}.
        My playlist {playlist} should also have {song}.
        I love {song}, it belongs into the playlist {playlist}.
        Please include {song} in the {playlist} playlist.
        {playlist} is a playlist of mine. I want {song} in it.
        Could {song} be on my {playlist} playlist?
        In the playlist {playlist}, add {song}.

        remove_from_playlist playlist_remove delete_song
        = Remove a song from a playlist. | Takes a song out of a list. | One song less in a playlist.
        - song|title|track: title; playlist|list|from: event
        Remove {song} from the playlist {playlist}.
        Take {song} out of {playlist}.
        playlist {playlist} minus {song}
        I can't hear {song} any more, throw it out of the playlist {playlist}.
        {song} doesn't fit into my {playlist} playlist, get it out.
        Please delete {song} from {playlist}, but keep the rest of the list.
        Why is {song} on the playlist {playlist}? Away with it.
        In the playlist {playlist}, I don't want {song}.
        Could you strike {song} from my {playlist} playlist?
        The playlist {playlist} would be better without {song}.

        record_program record_tv record_show schedule_recording
        = Record a program from television. | Sets the recorder to a channel and a time. | Records what is on later.
        - channel|station|on: ~BBC One,channel 4,ARD,RTL,Sky Sports,the news channel,Arte; time|at|start: clock
        - +minutes|duration: minutes
        Record {channel} at {time}.
        I can't watch at {time}. Record {channel} for me.
        {channel} {time} rec
        At {time} there's a film on {channel} that I want to keep.
        Please record {minutes} minutes of {channel} at {time}.
        Set the recorder to {channel}, {time}.
        My show begins at {time} on {channel}, and I'm out. Tape it.
        Could you tape what {channel} shows at {time}?
        {channel}: start recording at {time}, {minutes} minutes
        I'll be at work at {time}, so tape {channel}.

        set_subtitles subtitles show_subtitles subtitle_language
        = Show subtitles in a language. | Sets the language of the subtitles. | Text under the film, not the sound.
        - language|lang|to: language; +size|font_size: size
        Show {language} subtitles.
        Subtitles in {language}, please.
        {language} subs
        I can't follow what they say in the film. Put {language} text under it.
        I'd like to read along in {language}.
        Turn on the subtitles, {language}, {size}.
        My wife only reads {language}, could we have subtitles?
        The film is in {~language}, so give me subtitles in {language}.
        Make the subtitles {language} and {size}.
        switch subtitles to {language}

        set_sleep_timer sleep_timer stop_after turn_off_after
        = Let the music or film stop after some minutes. | Sets a sleep timer. | Turns playback off later.
        - minutes|after|duration: minutes
        Stop the music in {minutes} minutes.
        Let it play for {minutes} more minutes, then turn it off.
        sleep timer {minutes}
        I want to fall asleep with music. Turn it off after {minutes} minutes.
        Play on, but no longer than {minutes} minutes.
        In {minutes} minutes it should go quiet by itself.
        Sleep timer: {minutes} minutes
        The film may run for {minutes} minutes, then it's bedtime. Switch it off.
        Could playback end after {minutes} minutes?
        After {minutes} minutes I'll be asleep, so end the playback then.

        set_playback_speed playback_speed change_speed faster_slower
        = Set how fast something is played. | Changes the playback speed. | Speed of a talk or film; 1 is normal.
        - speed|rate|factor: =0.5,0.75,1.25,1.5,2
        Play it at speed {speed}.
        Speed {speed}, please.
        {speed}x
        This lecture is not at the right speed for me. Make it {speed} times as fast.
        I'd like to hear the talk at {speed} of its speed.
        Set the playback speed to {speed}.
        Could you play this with a speed of {speed}?
        Change the speed to {speed}.
        He speaks in a way that I need {speed} as the speed.
        playback rate: {speed}

        play_radio radio tune_in start_radio
        = Play a radio station. | Tunes in to a station. | Radio from the air or the internet.
        - station|name|channel: ~Radio 2,Classic FM,Jazz Radio,Radio Paris,Rock Antenne,Bay FM,Radio North
        Turn on {station}.
        I'd like to hear the radio, {station}.
        {station} please
        Radio: {station}
        Tune in to {station}.
        What's on {station}? Let me hear it.
        Every morning I listen to {station} on the radio. Switch it on.
        Could we have {station} on the radio?
        Put the radio on {station}.
        My favourite station is {station}. Play it.

        play_podcast start_podcast listen_podcast podcast_episode
        = Play an episode of a podcast. | Starts a podcast at an episode. | Talks to listen to, by name and number.
        - podcast|name|show: topic; episode|number|nr: #1-200
        Play episode {episode} of the podcast {podcast}.
        Podcast {podcast}, number {episode}, please.
        {podcast} ep {episode}
        I have heard {~small} episodes of {podcast}. Number {episode} is next, play it.
        Let me listen to the {podcast} podcast, episode {episode}.
        I'd like to go on with number {episode} of the podcast {podcast}.
        Number {episode} of {podcast}, the podcast, please.
        Start the podcast about {podcast} with episode {episode}.
        While I cook: {podcast}, episode {episode}
        Could I hear episode {episode}? The podcast is {podcast}.
        """,
    ),
    _family(
        "school",
        "get_grade enroll_student create_quiz create_event list_events book_appointment book_room "
        "log_workout request_vacation find_job add_expense",
        """submit_homework hand_in upload_homework turn_in
        = Hand in homework. | Submits a file as homework for a subject. | Gives the teacher what a student has done.
        - subject|course|class: subject; file|document|path: file
        Hand in {file} as my {subject} homework.
        My homework for {subject} is {file}, submit it.
        {subject} homework: {file}
        I have finished! {file} is for the {subject} teacher.
        Please give {file} in as homework for {subject}.
        For {subject} we had to write something. Mine is {file}, turn it in.
        Submit {file} in {subject}.
        {file} is what I did for {subject}, hand it in.
        Could you upload my {subject} homework? It's called {file}.
        Not {~file} but {file} is my homework for {subject}, hand it in.

        assign_homework set_homework give_homework new_assignment
        = Give homework to a class. | Sets a task with a day on which it is due. | Assigns work to students.
        - class|group|course: =5a,5b,6a,7c,8b,9a
        - task|text|what: ~read chapter 3,learn ten words,write a poem,solve page 12,draw a map
        - due|due_date|until: day
        Class {class} has to {task} until {due}.
        Homework for {class}: {task}, due {due}
        {class} {task} {due}
        Tell my class {class} to {task} for {due}.
        Until {due}, everybody in {class} should {task}.
        Give {class} something to do at home: {task}. It's due on {due}.
        I want {class} to {task}. They have time until {due}.
        By {due} the pupils of {class} must {task}.
        Please assign this to {class}: {task}, due on {due}
        Due {due}, class {class}: {task}

        record_absence mark_absent log_absence student_absent
        = Note that a student is absent. | Records a missing pupil with the day. | Absence list of the school.
        - student|pupil|name: name; date|day|when: day; +excused|with_excuse: ?excused/not excused
        {student} was absent on {date}.
        {student} missing {date}
        Mark {student} as absent on {date}.
        On {date}, {student} did not come to school.
        {student}'s chair was empty on {date}. Write that down.
        Please note that {student} missed school on {date}, {excused}.
        {date}: {student} absent, {excused}
        Nobody has seen {student} at school on {date}. Put it on the list.
        {student} skipped school on {date}, put that on record.
        All were there on {date} except {student}. Note the absence.

        create_flashcard new_flashcard add_card make_card
        = Create a card to learn with. | Makes a flashcard with a question and an answer.
        = Vocabulary card: front and back.
        - front|question|side_a: oddword; back|answer|side_b: oddword; +deck|box: subject
        Make a flashcard: front {front}, back {back}
        Card with {front} on the front and {back} on the back.
        {front} = {back}, as a flashcard
        I need to learn that {front} means {back}. Make a card.
        The back says {back}, the front says {front}. Create the card.
        Create a flashcard for {deck}: {front} / {back}
        When the card shows {front}, the answer on its back should be {back}.
        On the back of the card I want {back}, on the front {front}.
        New card in my {deck} box, front: {front}, back: {back}
        Please write me a learning card, {front} in front and {back} behind.

        change_course switch_course move_student
        = Move a student from one course to another. | Changes the course of a student.
        = Out of one class, into another one.
        - student|name|person: name; from_course|old|from: subject; to_course|new|to: subject
        Move {student} from {from_course} to {to_course}.
        {student} wants to do {to_course} instead of {from_course}.
        {student}: {from_course} -> {to_course}
        {student} isn't happy in {from_course}. Put {student} into {to_course}.
        Out of {from_course}, into {to_course}: that is for {student}.
        Please let {student} take {to_course} and not {from_course} any more.
        {student} leaves {from_course} and joins {to_course}.
        Into {to_course} goes {student}, who was in {from_course}.
        Could {student} change to {to_course}? It was {from_course} so far.
        Instead of {from_course}, {student} should be in {to_course}.

        get_timetable timetable_of class_schedule lessons_today
        = The lessons of a class on a day. | Returns the timetable. | Which subjects a class has.
        - class|group|course: =5a,5b,6a,7c,8b,9a; day|date|weekday: ~Monday,Tuesday,Wednesday,Thursday,Friday
        Which lessons does {class} have on {day}?
        Timetable of {class} for {day}?
        {class} {day} lessons
        What is on for class {class} on {day}?
        Does {class} have maths on {day}?
        When does school end for class {class} on {day}?
        My daughter is in {class}. What must she bring for her lessons on {day}?
        On {day}, which subjects has {class} got?
        Show me the {day} of class {class}.
        How many lessons are there on {day} in {class}?

        find_tutor book_tutor get_tutor private_lessons
        = Find a tutor for a subject. | Private lessons at a price per hour. | Somebody who helps a pupil to learn.
        - subject|course|topic: subject; city|location|where: city; +max_price|price|per_hour: #3-12*5
        Find a tutor for {subject} in {city}.
        My son is bad at {subject}. Who can teach him in {city}?
        tutor {subject} {city}
        I need private lessons in {subject}, I live in {city}.
        We're in {city} and look for help with {subject} after school.
        {subject} lessons in {city} for at most {max_price} euros an hour
        Is there anybody in {city} who gives lessons in {subject}?
        In {city}, please, somebody who can explain {subject} to me.
        I can pay {max_price} euros an hour for a {subject} tutor in {city}.
        Get our daughter a {subject} tutor. We live in {city}.
        """,
    ),
    _family(
        "maps",
        "get_directions get_distance find_nearby find_parking get_traffic get_weather find_restaurant "
        "update_address get_contact call_taxi bus_times train_departures rent_car find_object "
        "country_info get_population",
        """save_place add_favourite bookmark_place remember_place
        = Save a place on the map under a name. | Stores an address as a favourite. | Remembers where something is.
        - name|label|as: ~home,work,school,gym,grandma,cabin,dentist; address|place|location: street
        Save {address} as {name}.
        {name} is at {address}, save it on the map.
        {name} = {address}
        Remember {address} on the map, the name is {name}.
        I'd like to find {address} under the name {name}.
        Put {address} among my places. Call it {name}.
        The address is {address} and the label should be {name}.
        Store this place as {name}: {address}
        Mark {address} on my map as {name}, please.
        Could you add {address} to my saved places under {name}?

        share_location send_location live_location show_where_i_am
        = Show somebody where the user is. | Shares the position for some minutes. | Lets a person follow on the map.
        - person|with|contact|name: name; minutes|duration|for_minutes: minutes
        Share my location with {person} for {minutes} minutes.
        Let {person} see where I am for {minutes} minutes.
        location to {person}, {minutes} min
        {person} worries about me. Show where I am for the next {minutes} minutes.
        For {minutes} minutes, {person} may follow me on the map.
        I'm on my way to {person}, let them watch me for {minutes} minutes.
        {minutes} minutes of live location for {person}
        Would you show {person} my position for {minutes} minutes?
        {person} wants to find me in the crowd. Share my position, {minutes} minutes.
        Allow {person} to track me, but only for {minutes} minutes.

        find_charging_station charging_points ev_charger where_to_charge
        = Find a charging station for electric cars. | Where to load a car in a city. | EV chargers by power in kW.
        - city|location|place: city; +power|kw|min_power: =11,22,50,150
        Where can I charge my electric car in {city}?
        charging station {city}
        My battery is nearly empty and I'm in {city}. Where is a charger?
        Find a charger in {city} with {power} kW.
        Are there places to load an electric car in {city}?
        I drive an electric car to {city}. Where do I get power?
        In {city}, I need a charger with at least {power} kW.
        Which stations in {city} have plugs for electric cars?
        ev charger, {city}, {power} kW
        Show me where electric cars are charged in {city}.

        get_coordinates geocode address_to_coordinates lat_lon
        = The coordinates of an address. | Returns latitude and longitude. | Turns an address into a point on the map.
        - address|place|location: street; city|town|in: city
        What are the coordinates of {address} in {city}?
        latitude and longitude of {address}, {city}
        {address}, {city}: coordinates?
        I need the exact point on the map for {address} in {city}.
        In {city} there is {address}. Give me its latitude.
        Turn {address}, {city} into coordinates.
        The drone needs coordinates. It's {address} in {city}.
        Where exactly is {address} in {city}, in degrees north and east?
        geocode {address} {city}
        How far north is {address}, {city}? I need the latitude.

        report_road_problem traffic_alert report_hazard warn_drivers
        = Report a problem on a road. | Warns other drivers. | Tells the map of a hazard: what it is and where.
        - kind|type|problem: =accident:an accident,ice,roadworks,flood:a flood,animals; road|street|where: road
        - +direction|towards: city
        There is {kind} on the {road}, warn the others.
        {kind} on {road}
        Report {kind} on the {road}.
        I'm on the {road} and see this: {kind}. Tell the other drivers.
        Watch out on the {road}: {kind}! Please report it.
        On the {road} towards {direction}: {kind}
        Warning for the {road}: {kind}
        Other drivers should know about {kind} on the {road}.
        Put {kind} on the map, road {road}, direction {direction}.
        Could you report the {road}? What I see is {kind}.

        get_elevation elevation height_above_sea how_high
        = How high a place lies. | Returns metres above the sea. | Elevation of a town.
        - place|city|location: city; +unit|in: =metres,feet
        How high is {place} above the sea?
        elevation {place}
        How many {unit} above the sea does {place} lie?
        Does {place} lie higher than 500 metres?
        What's the height of {place} above sea level?
        I get dizzy in the mountains. How high up is {place}?
        Is {place} up in the hills or down by the sea? I need its height.
        Elevation of {place} in {unit}, please.
        At what height do people in {place} live?
        Tell me how far above the sea {place} is, in {unit}.
        """,
    ),
    _family(
        "office",
        "send_email read_emails search_email write_file read_file rename_file delete_file share_file "
        "print_document summarize_text list_files create_invoice request_vacation set_language "
        "list_events create_event translate unsubscribe",
        """convert_file change_format file_converter save_as
        = Convert a file to another format. | Makes a file of another kind out of a file.
        = Changes the format, not the name or the language.
        - file|path|document: old_file; format|to|target_format: =pdf,docx,html,txt,epub
        Convert {file} to {format}.
        {file} -> {format}
        I need {file} as {format}.
        Make a {format} out of {file}.
        My phone can't open {file}. Could you turn it into {format}?
        {format} instead of {file}, please.
        As {format}, please: {file}
        Turn {file} into the format {format}.
        The customer only takes {format}, and all I have is {file}.
        Save {file} in the format {format}.

        merge_pdfs join_files combine_documents glue_pdfs
        = Join several documents to one. | Combines PDF files in their order. | Makes one file out of many.
        - files|documents|parts: [pdf]; +output|name|result: pdf
        Join {files} to one document.
        Make one PDF out of {files}.
        {files}: one file please
        I have {files} and want a single document.
        Put {files} together.
        Combine {files} into {output}.
        Glue {files} together, I need one file only.
        Could you merge the documents {files}?
        My boss wants only one file instead of {files}.
        Merge {files} and call it {output}.

        compress_file zip_file make_smaller shrink_file
        = Make a file smaller. | Compresses a file. | Packs a file so that it takes less room.
        - file|path|document: file; +level|strength: =fast,normal,best
        Compress {file}.
        zip {file}
        {file} is too big for an e-mail, make it smaller.
        Pack {file} so that it takes less room.
        Shrink {file}, please.
        {file} fills my disk. Can you make it smaller?
        Compress {file} with the level {level}.
        I can't upload {file}, it's too large. Squeeze it.
        Make {file} as small as it gets, the level is {level}.
        Please zip the file {file} for me.

        sign_document add_signature sign_file put_signature
        = Sign a document for somebody. | Puts a signature on a file. | Digital signature of a person.
        - file|document|path: pdf; signer|name|person: name; +page: #1-20
        Sign {file} as {signer}.
        Put {signer}'s signature on {file}.
        {file}, signature {signer}
        The name under {file} should be {signer}. Sign it.
        On page {page} of {file}, put the signature of {signer}.
        {signer} agrees with {file} and wants to sign it.
        Please sign {file} in the name of {signer}.
        {file} lacks a signature. It's {signer}'s.
        Signature of {signer}, please, on page {page} of {file}.
        Add the signature {signer} to {file}.

        request_signature ask_signature send_for_signature get_signed
        = Ask somebody to sign a document. | Sends a file to an address to be signed.
        = Request a signature of another person.
        - file|document|path: pdf; email|to|address: email; +deadline|until: day
        Ask {email} to sign {file}.
        {email} has to sign {file}, send the request.
        {file} to be signed by {email}
        I need a signature from {email} on {file}.
        Get {file} signed by {email} until {deadline}.
        Whoever reads {email} should sign {file}. Ask for it.
        By {deadline}, {email} must have signed {file}. Send them the request.
        Could {email} please sign {file}? Ask them.
        Send {file} to {email} for a signature.
        We wait for the signature of {email} under {file}. Request it.

        set_out_of_office out_of_office auto_reply absence_note
        = Answer mails automatically while the user is away. | Sets an out-of-office note from one day to another.
        = Absence note for the mailbox.
        - start|from|first_day: early; end|until|last_day: late; +message|text: phrase
        I'm away from {start} to {end}. Set my out-of-office note.
        out of office {start} - {end}
        From {start} until {end}, tell people who mail me that I am not here.
        I come back after {end} and leave on {start}. Turn on the auto reply.
        Until {end} I don't read mails, starting on {start}. Put a note in my mailbox.
        Auto reply, {start} to {end}: {message}
        Set an absence note for my mails, first day {start}, last day {end}.
        My last day away is {end}, the first one {start}. Set the note for my mailbox.
        Please turn on the out-of-office reply. It starts {start} and ends {end}.
        I'll be hiking from {start} to {end}, so mails should get an automatic answer.

        terminate_contract end_contract give_notice quit_contract
        = End a contract. | Gives notice to the other party for a day. | Terminates an agreement with a company.
        - company|partner|with: company; date|end_date|on: day
        - +reason|why: ~too expensive,bad service,we are moving,not needed
        End our contract with {company} on {date}.
        contract {company} ends {date}
        We don't want to stay with {company}. Give notice for {date}.
        On {date}, the contract with {company} shall be over.
        Please terminate the agreement with {company}, last day {date}.
        As of {date} we need nothing from {company}. Quit the contract.
        Give {company} notice for {date}. The reason: {reason}
        I'd like to get out of the contract with {company} by {date}.
        {company}: notice for {date}, {reason}
        Our contract with {company} can stop on {date}, please do what is needed.

        extend_contract renew_contract prolong_contract
        = Make a contract last longer. | Extends an agreement by some months. | Prolongs a contract with a company.
        - company|partner|with: company; months|duration|by: #2-36
        Extend our contract with {company} by {months} months.
        contract {company} +{months} months
        We stay with {company} for another {months} months, extend the contract.
        {months} more months with {company}, please.
        The agreement with {company} runs out. Make it {months} months longer.
        We are happy with {company}, so add {months} months to the contract.
        Please prolong the contract with {company}. {months} months would be right.
        I'd like to keep {company} for {months} months more.
        For {months} months more we want to work under contract with {company}.
        Could our contract with {company} go on for {months} months?
        """,
    ),
    _family(
        "farm",
        "water_plants plant_info feed_pet read_sensor get_weather add_stock check_stock log_weight "
        "place_order get_temperature start_vacuum",
        """sow_field plant_crop sow seed_field
        = Sow a crop on a field. | Notes what is planted where. | Plans the sowing of a field.
        - field|plot|where: field; crop|plant|seed: ~wheat,barley,maize,rye,oats,rape,clover,beans; +date|day: day
        Sow {crop} on {field}.
        {field} gets {crop} this year.
        {crop} on {field}
        I want {crop} to grow on {field}.
        On {field}, we should have {crop} next.
        Plan the sowing: {field}, {crop}
        Last year {field} lay empty, this year I sow {crop} there.
        Put {crop} in the ground of {field} on {date}.
        Please enter {crop} as what is sown on {field}.
        {date}: sowing {crop}, {field}

        log_harvest record_harvest harvest enter_yield
        = Note what was harvested. | Records the tonnes of a crop from a field. | Harvest book of the farm.
        - field|plot|from: field; crop|plant|what: ~wheat,barley,maize,rye,oats,rape,clover,beans
        - tonnes|amount|yield: #2-90
        We harvested {tonnes} tonnes of {crop} from {field}.
        {field}: {tonnes} t {crop}
        Write {tonnes} tonnes of {crop} into the harvest book, from {field}.
        {field} gave us {tonnes} tonnes of {crop}.
        The {crop} on {field} is in, {tonnes} tonnes.
        Record the harvest: {crop}, {field}, {tonnes} tonnes
        From {field} came {tonnes} tonnes of {crop}, note it.
        {tonnes} tonnes! That's the {crop} of {field}. Put it in the book.
        Please log {tonnes} tonnes, it's {crop} and grew on {field}.
        Our combine brought in {tonnes} tonnes of {crop} on {field}.

        record_milk log_milk milk_yield enter_milk
        = Note how much milk a cow gave. | Records litres of milk. | Milk book by cow.
        - cow|animal|name: ~Bella,Daisy,Rosie,Lotte,Clover,Molly,Heidi; litres|amount|milk: #8-40
        - +time|milking: =morning,evening
        {cow} gave {litres} litres of milk.
        {cow} {litres} l
        {litres} litres from the cow {cow}, note it.
        Write down {litres} litres of milk for {cow}.
        This {time}, {cow} gave {litres} litres.
        How nice, {cow} had {litres} litres today. Put that in the milk book.
        The cow {cow}: {litres} litres in the {time}
        Please record {litres} litres for {cow}.
        I have just milked {cow} and got {litres} litres.
        Milk of {cow}, {time}: {litres} litres

        move_herd change_pasture drive_animals move_animals
        = Move animals from one pasture to another. | Drives a herd to another field. | Change of pasture.
        - animals|herd|what: ~cows,sheep,goats,horses,calves,geese; origin|from|old: field; destination|to|new: field
        Move the {animals} from {origin} to {destination}.
        {animals}: {origin} -> {destination}
        The grass on {origin} is gone, bring the {animals} to {destination}.
        Bring the {animals} over to {destination}, they are on {origin}.
        {destination} has fresh grass for the {animals}. They stand on {origin} now.
        Let the {animals} graze on {destination} instead of {origin}.
        On {origin} there are {animals}, they should go to {destination}.
        To {destination} with the {animals}! They've been on {origin} for weeks.
        Please drive our {animals} to {destination}, away from {origin}.
        The {animals} change from {origin} to {destination}.

        order_feed buy_feed animal_feed feed_order
        = Order food for animals. | Buys feed by the kilo. | Feed for the farm, not for people or pets at home.
        - feed|kind|type: ~hay,straw,barley,maize,pellets,beets; kilos|amount|kg: #2-40*50; +supplier|from: company
        Order {kilos} kilos of {feed}.
        {kilos} kg {feed}
        We're nearly out of {feed} for the animals. Get {kilos} kilos.
        The cows need {feed}, {kilos} kilos of it. Order it.
        Buy {kilos} kilos of {feed} from {supplier}.
        Have {supplier} bring us {feed}, {kilos} kilos.
        {feed} for the stable: {kilos} kilos, please.
        Could you order {feed}? I think {kilos} kilos will do.
        The barn is empty, I need {kilos} kilos of {feed}.
        Feed order: {feed}, {kilos} kg

        get_soil_moisture soil_moisture how_wet check_soil
        = How wet the soil of a field is. | Returns the soil moisture in percent. | Moisture sensor of a field.
        - field|plot|where: field; +depth|cm|depth_cm: =10,30,60
        How wet is the soil of {field}?
        soil moisture {field}
        Is {field} too dry for sowing?
        Does {field} need rain?
        How much water is in the ground of {field}, {depth} cm deep?
        Check the earth of {field}, is it wet enough?
        Can I drive the tractor on {field}, or is the ground too wet?
        Moisture at {depth} cm in {field}?
        Tell me how dry {field} is.
        It hasn't rained for weeks. How is the soil on {field}?

        log_eggs collect_eggs egg_count record_eggs
        = Note how many eggs were collected. | Records the eggs of a hen house. | Egg book of the farm.
        - count|eggs|number: #3-200; house|coop|from: =north,south,east,west
        {count} eggs from the {house} hen house.
        {house} coop {count} eggs
        I found {count} eggs in the {house} coop, note that.
        The hens in the {house} coop laid {count} eggs.
        Put {count} in the egg book for the {house} hen house.
        In the {house} hen house there were {count} eggs this morning.
        Record {count} eggs, {house} coop.
        Please write down that the {house} coop gave {count} eggs.
        Only {count} eggs today in the {house} coop, record it.
        The {house} coop had {count} eggs, and one that was broken.
        """,
    ),
    _family(
        "freight",
        "track_package place_order get_order_status cancel_order add_stock check_stock update_address "
        "call_taxi rent_car refund_order get_distance get_directions find_object",
        """schedule_pickup order_pickup collect_parcel book_pickup
        = Have a parcel collected. | Schedules a pickup at an address. | The driver comes and takes a parcel along.
        - address|place|from: street; date|day|when: day; +parcels|count|pieces: few
        Pick up a parcel at {address} on {date}.
        {date}, pickup at {address}
        Somebody should collect my parcel on {date}. I live at {address}.
        Come to {address} on {date}, I have {parcels} parcels to send.
        At {address} there are {parcels} parcels for you. {date} would suit me.
        I can't carry it to the post. Please collect it on {date} at {address}.
        Pickup {address} {date}
        On {date}, your driver may fetch the box at {address}.
        Could you fetch {parcels} parcels from {address} on {date}?
        My parcel is ready at {address}, {date} is a good day to fetch it.

        assign_driver set_driver driver_for_truck give_truck
        = Give a truck to a driver. | Assigns a driver to a vehicle. | Who drives which truck.
        - driver|name|person: name; truck|vehicle|plate: plate; +date|day: day
        {driver} drives truck {truck}.
        {truck}: driver {driver}
        Put {driver} into the truck {truck}.
        Let {driver} take {truck} on {date}.
        Who drives {truck}? {driver} does.
        Assign {truck} to {driver}.
        {driver} has no truck yet, give {truck} to them.
        The truck {truck} needs somebody at the wheel, {driver} is free.
        On {date}, truck {truck} goes with {driver}.
        Not {~name} but {driver} is the driver of {truck}.

        reroute_shipment change_destination redirect_shipment
        = Send a shipment to another city. | Changes where a shipment goes. | Redirects freight that is on its way.
        - shipment|number|id: code; city|destination|to: city
        Send shipment {shipment} to {city} instead.
        {shipment} -> {city}
        The freight {shipment} must go to {city}.
        Redirect {shipment} to {city}, please.
        Shipment {shipment} was meant for {~city}, but {city} is right.
        {city} is the new destination of {shipment}.
        Could you let shipment {shipment} go to {city}?
        We need what is in {shipment} in {city}, not in {~city}. Reroute it.
        Change the destination of {shipment}: {city}
        To {city}, please, with the shipment {shipment}.

        hold_shipment stop_shipment freeze_shipment
        = Stop a shipment for now. | Holds freight where it is. | A shipment must not go on until it is released.
        - shipment|number|id: code; +reason|why: ~papers are missing,wrong goods,not paid,customs
        Hold the shipment {shipment}.
        {shipment}: wait!
        Don't let {shipment} go on, hold that shipment.
        Shipment {shipment} has to stay where it is.
        Stop shipment {shipment} for now. Reason: {reason}
        Please keep {shipment} in the warehouse until I say so.
        The shipment {shipment} must not leave, {reason}.
        hold {shipment} ({reason})
        Can you stop the shipment {shipment} before it leaves?
        I want {shipment} to wait, it is not to be sent on yet.

        release_shipment continue_shipment free_shipment
        = Let a shipment go on that was held. | Releases freight. | A shipment may leave again.
        - shipment|number|id: code
        Release the shipment {shipment}.
        {shipment} may go.
        The papers for {shipment} are here, so the shipment can go on.
        We held {shipment} back, now it can leave.
        Let shipment {shipment} go on its way again.
        Free the shipment {shipment}, everything is paid now.
        {shipment}: go!
        Please lift the hold on {shipment}.
        No need to keep {shipment} any longer, send the shipment on.
        Shipment {shipment} has waited long enough, let it leave.

        move_pallet transfer_pallet relocate_pallet
        = Move a pallet to another shelf. | Takes a pallet from one place in the warehouse to another.
        = Forklift order.
        - pallet|number|id: #100-9999; origin|from|from_shelf: shelf; destination|to|to_shelf: shelf
        Move pallet {pallet} from {origin} to {destination}.
        pallet {pallet} {origin} -> {destination}
        Pallet {pallet} is in {origin}, but belongs in {destination}.
        Into {destination}, please, with the pallet {pallet} from {origin}.
        Take {pallet} out of {origin} and put it in {destination}.
        We need room in {origin}. Bring its pallet {pallet} to {destination}.
        {destination} is empty, so let pallet {pallet} go there, it's in {origin}.
        The forklift should carry pallet {pallet} to {destination}. It finds it in {origin}.
        From shelf {origin} to shelf {destination}: pallet {pallet}
        Put {pallet} in {destination}. Right now that pallet is in {origin}.

        report_damage damaged_shipment damage_report
        = Report that freight is damaged. | Notes a damage of a shipment. | Damage report for the insurance.
        - shipment|number|id: code
        - damage|description|what: ~the box is wet,two jars are broken,a corner is crushed,the seal is torn
        Shipment {shipment} is damaged: {damage}
        {shipment}: {damage}
        I got {shipment}, but {damage}.
        Look at this shipment {shipment}! {damage}, report that.
        {damage}. It is the shipment {shipment}.
        Please report a damage: {shipment}, {damage}
        The insurance must know about {shipment}, since {damage}.
        When {shipment} came, we saw that {damage}.
        Damage report for {shipment}: {damage}
        Please write down what's wrong with shipment {shipment}: {damage}

        calculate_shipping shipping_cost postage freight_price
        = What it costs to send something. | Calculates the postage by weight and country.
        = Price of shipping, nothing is sent.
        - weight|kilos|kg: #1-40; country|to|destination: country; +speed|service: =standard,express
        What does it cost to send {weight} kilos to {country}?
        postage {country} {weight} kg
        How much is a parcel to {country} that weighs {weight} kilos?
        I'd like to send {weight} kilos to {country} by {speed}. How much?
        To {country}, {weight} kilos: what would I pay?
        My parcel weighs {weight} kilos and goes to {country}. Tell me the price.
        Is it expensive to ship {weight} kilos to {country}?
        Shipping price for {weight} kg, {speed}, {country}?
        Tell me the postage for {weight} kilos to {country}.
        A friend in {country} gets a box of {weight} kilos. What's the postage?
        """,
    ),
    _family(
        "game",
        "create_poll create_quiz roll_dice send_invitation get_score search_products place_order write_file",
        """start_game new_game begin_game play_game
        = Start a game. | Begins a round against the computer. | New game with a level of difficulty.
        - game|name|title: ~chess,checkers,poker,sudoku,solitaire,mahjong,backgammon
        - +difficulty|level: =easy,medium,hard; +players|count: few
        Start a game of {game}.
        {game}, you and me?
        I want to play {game}.
        Let's play {game} on {difficulty}.
        I'm bored. A round of {game}!
        How about {game}, but {difficulty}?
        A {difficulty} game of {game}, please.
        We are {players} and would like to play {game}.
        {game} for {players} players
        Care for a round of {game}?
        {difficulty} {game} now

        load_game continue_game resume_game open_save
        = Go on with a saved game. | Loads a game from a slot. | Continues where the player stopped.
        - slot|save|number: #1-12
        Load the game in slot {slot}.
        Go on with save {slot}.
        slot {slot}, continue
        I want to play on where I stopped, it's slot {slot}.
        Open my saved game number {slot}.
        Back to my game in slot {slot}, please.
        Yesterday I stopped in the middle. The game is in slot {slot}, let me go on.
        Please continue the game from slot {slot}.
        Resume {slot}, the saved game.
        My old game is in slot {slot}. Bring it back.

        save_game store_game keep_game write_save
        = Save the game. | Stores the game in a slot. | Keeps the state of a game, to go on later.
        - slot|save|number: #1-12
        Save the game in slot {slot}.
        save slot {slot}
        I have to go to bed, store my game in slot {slot}.
        Keep this game in slot {slot}, I'll play on tomorrow.
        Put what I have reached into slot {slot}.
        Please write the game to slot {slot}.
        Before the big fight, save in slot {slot}.
        Store it, slot {slot}, I must leave.
        Slot {slot} is free, so save my game there.
        Mum says dinner's ready. Save the game, slot {slot}

        move_piece make_move play_move chess_move
        = Move a piece on the board. | Makes a move from one field to another.
        = Chess move by the names of the fields.
        - start|from|origin: chess_field; end|to|target: chess_field
        {start} goes to {end}
        Move from {start} to {end}.
        My piece on {start} goes to {end}.
        To {end} with what stands on {start}.
        I play {start} {end}.
        Take the piece on {end} with mine on {start}.
        It's my turn: {start}-{end}
        Put the piece from {start} on {end}.
        On {end} I want the piece that is on {start}.
        Let the one on {start} go to {end}, and not to {~chess_field}.

        trade_items swap_items offer_trade exchange_items
        = Offer a trade to another player. | Gives some things and gets others. | A swap of items in the game.
        - player|with|partner: name; give|offer|mine: items; receive|get|theirs: items
        Trade with {player}: my {give} for {receive}.
        Offer {player} {give}, I want {receive}.
        {player}: {give} -> {receive}
        I'd like to get {receive} from {player} and give {give}.
        Ask {player} for {receive}. I'd pay with my {give}.
        {player} has {receive}, and I have too many {give}. Trade.
        For {receive}, {player} can have my {give}.
        Swap {give} against the {receive} of {player}.
        I give {give}, {player} gives {receive}. Make that offer.
        Would {player} part with {receive}? I offer {give}.

        kick_player remove_player ban_player throw_out
        = Throw a player out of the game. | Removes somebody from a match, with a reason.
        = For people who do not play fair.
        - player|name|user: name; +reason|why: ~cheating,insults,spam,being away
        Kick {player}.
        Throw {player} out of the game.
        {player} must leave this game, {reason}.
        I'm sick of {player}, who spoils the game for everybody.
        kick {player} for {reason}
        Please remove {player} from our match.
        {player} cheats! Out of the game!
        Out with {player}. The reason is {reason}.
        Nobody wants to play with {player} any longer.
        We others agree that {player} has to leave the game.
        """,
    ),
    _family(
        "lab",
        "read_sensor start_coffee set_timer set_temperature plant_info place_order check_stock "
        "order_medicine run_code run_tests get_temperature query_sales",
        """heat_sample warm_sample heat_up incubate
        = Heat a sample. | Keeps a sample at a temperature for some minutes. | Lab oven; degrees and minutes.
        - sample|id|sample_id: code; degrees|temperature|celsius: #30-95; minutes|duration|time: minutes
        Heat sample {sample} to {degrees} degrees for {minutes} minutes.
        {sample}: {degrees} degrees, {minutes} min
        For {minutes} minutes, keep {sample} at {degrees} degrees.
        Sample {sample} has to be {degrees} degrees warm for {minutes} minutes.
        {minutes} minutes at {degrees} degrees, that's for sample {sample}.
        Put {sample} into the oven, {degrees} degrees, {minutes} minutes.
        I need {sample} heated: {minutes} minutes, {degrees} degrees.
        At {degrees} degrees, let {sample} stand for {minutes} minutes.
        Please warm the sample {sample} up to {degrees} degrees. {minutes} minutes are enough.
        Incubate {sample} ({degrees} degrees, {minutes} minutes).

        cool_sample freeze_sample chill_sample
        = Cool a sample. | Puts a sample into the freezer at a temperature. | Lab freezer; degrees below zero.
        - sample|id|sample_id: code; degrees|below_zero|cold: =20,40,80
        Cool sample {sample} to {degrees} degrees below zero.
        {sample} into the freezer, minus {degrees}
        Freeze {sample} at minus {degrees} degrees.
        Sample {sample} must be kept at minus {degrees}.
        It's too warm for {sample}, it needs minus {degrees} degrees.
        Minus {degrees} degrees for sample {sample}, please.
        Please put {sample} in the cold, {degrees} degrees below zero.
        {sample} goes bad if it isn't frozen. Minus {degrees}.
        Bring {sample} down to minus {degrees} degrees.
        We'll need {sample} next year, so freeze it at minus {degrees}.

        record_measurement log_measurement enter_value save_reading
        = Record a measured value. | Notes a value with its unit for a sample. | Lab book entry.
        - sample|id|sample_id: code; value|reading|result: decimal; unit|measured_in: =mg,ml,mm,pH,volts
        Sample {sample} has {value} {unit}, write it in the lab book.
        {sample}: {value} {unit}
        I measured {value} {unit} for {sample}.
        Note for sample {sample}: value {value}, unit {unit}
        The unit is {unit} and the value {value}. Record that for {sample}.
        In {unit}, {sample} came out at {value}.
        Record {value} {unit} for {sample}, please.
        Yesterday it was {~small}, today {sample} shows {value} {unit}. Enter it.
        Please enter that {sample} gave {value} {unit}.
        {value} {unit} is what I read off for {sample}, put it down.

        order_reagent order_chemical buy_reagent
        = Order a chemical for the laboratory. | Buys a reagent by volume. | Chemicals only, in millilitres.
        - chemical|reagent|name: ~ethanol,acetone,acetic acid,glycerine,ammonia,hydrogen peroxide
        - ml|volume|amount: ml; +purity|grade: =technical,pure,ultrapure
        Order {ml} ml of {chemical}.
        {chemical} {ml} ml
        We're running low on {chemical} in the lab, get {ml} ml.
        The lab needs {chemical}, {ml} millilitres of it.
        Get us {ml} ml of {purity} {chemical}.
        For my next experiment I need {ml} ml of {chemical}.
        There's no {chemical} left, order {ml} ml, {purity} grade.
        Could you buy {chemical} for the lab? {ml} ml will do.
        {ml} ml {chemical}, please, for the laboratory.
        Somebody used up the {chemical}. Order {ml} ml.

        run_simulation simulate start_simulation
        = Run a simulation. | Computes a model for a number of steps. | Simulates what would happen.
        - model|name|scenario: ~weather model,traffic model,epidemic,ocean currents,galaxy,bee colony
        - steps|iterations|rounds: #1-50*100; +seed: #1-99
        Run the {model} simulation for {steps} steps.
        simulate {model}, {steps} steps
        Let the {model} simulation run, {steps} steps.
        {steps} steps of the {model} simulation, please.
        I'd like to see what the {model} simulation does in {steps} steps.
        Simulate {model} with the seed {seed}, {steps} steps.
        Start a simulation: {model}, steps {steps}, seed {seed}
        What comes out of the {model} simulation after {steps} steps?
        Compute {steps} steps of {model}.
        For my thesis I need the {model} simulated over {steps} steps.

        point_telescope aim_telescope observe_object telescope
        = Point the telescope at an object. | Observes something in the sky at a time. | Telescope control.
        - object|target|what: ~Mars,Jupiter,Saturn,Venus,the Crab Nebula,the Andromeda galaxy,Polaris
        - time|at|when: clock; +minutes|exposure: minutes
        Point the telescope at {object} at {time}.
        {object}, {time}, telescope
        I'd like to look at {object} at {time}.
        At {time}, aim the telescope at {object}.
        Let's see {object} through the telescope, {time} is best.
        Observe {object} at {time} for {minutes} minutes.
        {object} is up at {time}, turn the telescope there.
        Telescope: {object} from {time} on, {minutes} minutes
        Could the telescope be on {object} at {time}?
        The class wants to see {object} at {time}, get the telescope ready.
        """,
    ),
    _family(
        "photo",
        "take_photo generate_image share_file delete_file rename_file print_document set_light_color "
        "scan_code get_birthday send_message",
        """crop_photo crop_image trim_photo cut_picture
        = Crop a photo to a shape. | Cuts the edges of an image off.
        = Changes the shape of a picture, not its size or direction.
        - photo|file|image: photo; ratio|shape|aspect: =1x1,4x3,16x9,3x2
        Crop {photo} to {ratio}.
        {photo} {ratio}
        I want {photo} in the shape {ratio}.
        Cut the edges of {photo} off so that it is {ratio}.
        My page wants pictures of {ratio}. Do that with {photo}.
        Make {photo} {ratio}, please.
        {ratio} would look best for {photo}, cut it.
        Could you trim {photo} to the ratio {ratio}?
        The edges of {photo} are ugly. Crop it, {ratio}.
        The ratio of {photo} should be {ratio}.

        rotate_photo turn_photo rotate_image
        = Turn a photo. | Rotates an image by some degrees. | For pictures that lie on their side or upside down.
        - photo|file|image: photo; degrees|angle|by: =90,180,270; +direction|way: =left,right
        Rotate {photo} by {degrees} degrees.
        turn {photo} {degrees}
        {photo} lies on its side, turn it by {degrees} degrees.
        Turn {photo} {degrees} degrees to the {direction}.
        I held the camera wrong. {photo} needs {degrees} degrees.
        {degrees} degrees for {photo}, to the {direction}, please.
        Could you turn the picture {photo} by {degrees} degrees?
        {photo} isn't upright. Rotate it, {degrees} degrees.
        Spin {photo} {degrees} degrees.
        To look right, {photo} has to be turned by {degrees} degrees.

        resize_photo resize_image scale_photo change_size
        = Change the size of a photo. | Resizes an image to a width and a height in pixels.
        = Makes a picture larger or smaller.
        - photo|file|image: photo; width|w|pixels_wide: #1-40*50; height|h|pixels_high: #1-40*50
        Make {photo} {width} pixels wide and {height} high.
        {photo} {width}x{height}
        Resize {photo} to {width} by {height}.
        The height of {photo} should be {height} and the width {width}.
        {photo} must be {height} pixels high and {width} wide.
        I need {photo} with a width of {width} and a height of {height}.
        For my page: {photo}, {width} wide, {height} high
        Could {photo} be {width} x {height} pixels?
        {photo} is too large. Height {height}, width {width}, please.
        {width} across and {height} down, that's how I want {photo}.

        apply_filter add_filter photo_filter filter_image
        = Put a filter on a photo. | Changes the look of an image. | Filters such as black and white.
        - photo|file|image: photo; filter|effect|style: =sepia,vintage,warm,cold,blur; +strength|percent: percent
        Put the {filter} filter on {photo}.
        {photo}, {filter}
        Use {filter} on {photo}.
        I'd like {photo} with the filter {filter}.
        Apply {filter} to {photo}, {strength} percent.
        Let {photo} look {filter}, please, use the filter.
        {filter} filter for {photo}
        Could you give {photo} the {filter} look?
        {photo} is boring. The filter {filter} might help.
        Filter {filter} at {strength} percent on {photo}.

        tag_person tag_photo name_face who_is_on_photo
        = Note who is on a photo. | Tags a person in a picture. | Names a face.
        - photo|file|image: photo; person|name|who: name
        {person} is on {photo}, tag that.
        Tag {person} in {photo}.
        {photo}: {person}
        The face on {photo} is {person}.
        Write down that {photo} shows {person}.
        That's {person} on {photo}! Put the name there.
        On {photo} you see {person}. Note the name.
        Please add the name {person} to {photo}.
        I know who's on {photo}: {person}
        Not {~name}, it's {person} who is on {photo}. Tag that.
        """,
    ),
    _family(
        "kitchen",
        "get_recipe recipes_with get_calories add_to_shopping_list show_shopping_list log_meal set_timer "
        "find_restaurant buy_groceries order_pizza book_table calculate convert_units create_event "
        "list_events start_coffee plan_trip search_products",
        """scale_recipe adjust_recipe recipe_for servings
        = Change a recipe for a number of people. | Scales the amounts of a recipe.
        = How much of each thing for more or fewer eaters.
        - dish|recipe|name: dish; people|servings|portions: few
        Change the {dish} recipe for {people} people.
        {dish} for {people}
        We are {people} today. How much do I need for {dish}?
        The recipe of {dish} should be for {people}.
        Scale my {dish} to {people} servings.
        For {people} people, what amounts do I take for {dish}?
        I have a recipe for {dish}, but {people} people are coming. Adapt it.
        How much flour and so on do I take if {people} eat {dish}?
        Give me the amounts of {dish} for {people}, please.
        {people} portions of {dish}: adjust my recipe

        substitute_ingredient replace_ingredient ingredient_swap use_instead
        = What one can use instead of an ingredient. | Finds a substitute for something that is missing.
        = Replaces one thing in cooking by another.
        - ingredient|item|food: grocery; +dish|recipe|for_dish: dish
        What can I use instead of {ingredient}?
        no {ingredient}, what else?
        I'm cooking and have run out of {ingredient}. What could I take in its place?
        Is there a substitute for {ingredient}?
        My son can't have {ingredient}. What else would do?
        I'm making {dish} without {ingredient}. What can replace it?
        {ingredient} alternative?
        The shop had no {ingredient} for the {dish}. Anything that works instead?
        I'm allergic to {ingredient}, so what goes in its place?
        What do people use if there's no {ingredient}?

        plan_meal schedule_meal meal_plan menu_for
        = Plan a dish for a day. | Puts a meal into the plan of the week. | What is cooked when.
        - dish|meal|what: dish; date|day|when: day; +people|guests: few
        On {date} we eat {dish}, put it in the meal plan.
        {date}: {dish}
        Plan {dish} for {date}.
        I'd like to cook {dish} on {date}.
        Meal plan: {dish} on {date}
        We'll have {dish} on {date} and not on {~day}. Plan it.
        {people} of us will eat {dish} on {date}, plan it.
        My husband wants {dish} on {date}. Note it in our menu.
        Please put {dish} on the menu for {date}.
        What's for dinner on {date}? {dish}, put it in the plan.

        get_cooking_time cooking_time how_long_to_cook boil_time
        = How long something must be cooked. | Returns minutes for a food and its weight.
        = Time in the oven or pot. Sets no timer.
        - food|ingredient|what: ~a chicken,potatoes,a turkey,rice,beef,a fish,lentils,eggs; +grams|weight: #2-60*50
        How long do I cook {food}?
        {food}, how many minutes?
        How many minutes does it take to cook {food}?
        {food} of {grams} grams: how long in the pot?
        When will it be done if I cook {food}?
        I have never cooked {food}. How long does it take?
        I've got {food}, {grams} grams. What's the cooking time?
        Is half an hour enough to cook {food}?
        Cooking time for {food}?
        For how long should I boil or roast {food}?

        pair_wine wine_for find_wine drink_with
        = Find a wine for a dish. | Tells which wine goes with a meal. | Wine pairing up to a price.
        - dish|meal|food: dish; +max_price|budget|price: #8-60
        Which wine goes with {dish}?
        wine for {dish}
        We're having {dish}. What should we drink with it?
        Red or white with {dish}?
        I need a wine to go with {dish}, up to {max_price} euros.
        What does one drink to {dish}?
        Find me a bottle that suits {dish}, please.
        I serve {dish} tonight and know nothing of wine.
        A bottle for at most {max_price} euros that goes well with {dish}?
        Would a white wine be right with {dish}, or which one?
        """,
    ),
    _family(
        "feast",
        "create_event list_events cancel_event send_invitation book_room book_table book_hotel "
        "reserve_restaurant create_poll find_restaurant get_showtimes book_cinema plan_trip days_until "
        "get_birthday log_meal order_pizza book_appointment",
        """add_guest invite_guest put_on_guest_list new_guest
        = Put somebody on the guest list. | Adds a guest to an event. | Guest list; one person at a time.
        - guest|name|person: name; event|party|occasion: event; +plus_one|with_partner: ?with a friend/alone
        Put {guest} on the guest list of the {event}.
        {guest} comes to the {event}, too.
        guest list {event}: + {guest}
        Add {guest} to the guests of the {event}.
        For the {event}, note one more guest: {guest}
        I met {guest}, who will come to our {event}. Put the name on the list.
        {guest} will be at the {event} {plus_one}.
        At the {event} we'll also have {guest} as a guest, {plus_one}.
        {guest} has said yes to the {event}, so add the name to the guests.
        Please write {guest} on the list of people for the {event}.

        remove_guest uninvite_guest delete_guest off_guest_list
        = Take somebody off the guest list. | Removes a guest from an event. | Guest list; one name less.
        - guest|name|person: name; event|party|occasion: event
        Take {guest} off the guest list of the {event}.
        {guest} isn't coming to the {event} after all.
        guest list {event}: - {guest}
        Remove {guest} from the guests of the {event}.
        {guest} has said no to the {event}, strike the name off.
        I don't want {guest} at my {event} any more.
        For the {event}, we have one guest less: {guest}
        Please cross out {guest}, who can't make it to the {event}.
        {guest} is ill and will miss the {event}. Take the name off the list.
        Delete {guest} from the list for the {event}.

        seat_guest assign_seat table_for_guest seating_plan
        = Give a guest a table. | Notes at which table somebody sits. | Seating plan by table number.
        - guest|name|person: name; table|table_number|at: #1-30
        {guest} sits at table {table}.
        Put {guest} at table {table}.
        table {table}: {guest}
        At table {table} there's room for {guest}.
        In the seating plan, {guest} gets table {table}.
        I don't want {guest} near {~name}. Table {table} is better.
        Seat {guest} at number {table}, please.
        Let {guest} have a chair at table {table}.
        Where does {guest} sit? At table {table}, write that into the plan.
        Table {table} is where {guest} should be.

        order_catering book_catering catering food_for_event
        = Order food for an event. | Books catering for a number of people on a day. | A cook brings the food to you.
        - people|guests|count: #10-200; date|day|when: day; +cuisine|kind|style: cuisine
        Order catering for {people} people on {date}.
        catering {date} {people} people
        We need food for {people} guests on {date}, somebody should bring it.
        On {date}, {people} hungry guests will be here. Book a caterer.
        {people} people, {date}, {cuisine} food: order the catering
        Our firm has a party on {date}. A buffet for {people}, please.
        Could you get {cuisine} catering for {people} people on {date}?
        Let a caterer feed {people} people on {date}.
        For {date} I need a buffet that is enough for {people}.
        I can't cook for {people} guests! Get a caterer for {date}.

        hire_band book_band book_musicians live_music
        = Hire a band for an event. | Books musicians for a day. | Live music by style, up to a price.
        - style|genre|music: ~jazz,rock,folk,swing,classical,salsa; date|day|when: day
        - +max_price|budget|fee: #4-60*50
        Hire a {style} band for {date}.
        {style} band {date}
        We'd like live {style} music on {date}.
        Book musicians for {date}, {style} if possible.
        On {date} we dance! Get us a band that plays {style}.
        For our wedding on {date} we want a {style} band, not more than {max_price} euros.
        Who could play {style} at our party on {date}? Book them.
        Live music on {date}: {style}, at most {max_price} euros
        I need some people who play {style} live on {date}.
        Could a {style} band come on {date}?

        rsvp answer_invitation reply_invitation confirm_attendance
        = Answer an invitation. | Tells the host whether one comes. | Yes or no to an event; true is yes.
        - host|to|from: name; attending|coming|yes: ?I will come/I will not come,I am coming/I am not coming,yes/no
        - +guests|people: few
        Answer {host}'s invitation: {attending}
        {host} invited me: {attending}
        {host} wants to know whether I come. Tell them: {attending}
        Reply to the invitation of {host}, {attending}.
        I was invited by {host}. My answer: {attending}
        rsvp {host}: {attending}
        RSVP to {host}: {attending}, we would be {guests}
        Please tell {host} about the party: {attending}
        My answer to {host}'s invitation is this: {attending}
        Let {host} have my answer to the invitation: {attending}
        """,
    ),
    _family(
        "town",
        "create_ticket update_address book_appointment create_event list_events get_holidays "
        "find_parking create_invoice transfer_money order_medicine feed_pet send_email get_traffic "
        "create_user get_user add_reminder days_until",
        """report_street_problem report_defect street_report tell_city
        = Tell the city of a problem in a street. | Reports holes, broken lamps and the like.
        = Citizens' report with the street.
        - street|address|where: street
        - problem|what|kind: ~a hole in the road,a broken street lamp,a fallen tree,rubbish everywhere,a leaking pipe
        There is {problem} at {street}.
        {street}: {problem}
        Report {problem} at {street} to the city.
        Tell the town hall that there's {problem} at {street}.
        At {street} I saw {problem}.
        In front of {street} you'll find {problem}. Somebody should see to it.
        {problem} at {street}, please send somebody.
        For weeks there has been {problem} at {street}.
        Could you tell the city about {street}? It's {problem}.
        I nearly fell! {problem}, right at {street}.

        register_pet register_dog pet_registration dog_tax
        = Register a pet with the city. | Enters an animal under the name of its owner.
        = Needed for dogs and some other animals.
        - kind|animal|species: pet; pet_name|name|called: name; +chip|chip_number: phone
        Register my {kind} {pet_name}.
        I've got a {kind} now, called {pet_name}. It has to be registered.
        {kind} {pet_name}, register
        We have a new {kind} in the family, {pet_name}. Tell the city.
        My {kind} is called {pet_name} and has the chip {chip}. Please register it.
        Please enter our {kind} in the pet register, the name is {pet_name}.
        {pet_name} is a {kind} and must be registered with the town.
        Registration for a {kind} named {pet_name}, chip {chip}
        Do the paperwork for {pet_name}, my {kind}.
        The town wants to know of my {kind}, whose name is {pet_name}.

        register_move report_move change_residence new_residence
        = Tell the city of a new home. | Registers that somebody has moved from one address to another.
        = For residents who moved.
        - old_address|from|old: street; new_address|to|new: street; +date|moved_on: day
        I moved from {old_address} to {new_address}.
        {old_address} -> {new_address}, we moved
        I now live at {new_address}, it was {old_address} before.
        Tell the town hall that I left {old_address} and live at {new_address}.
        My new home is {new_address}. The old one was {old_address}. Register that.
        Register our move to {new_address}, we used to live at {old_address}.
        We moved on {date}, from {old_address} to {new_address}.
        Until now {old_address}, from {date} on {new_address}. Register it.
        Not {old_address} but {new_address} is where I live now.
        Please change my residence, {old_address} is old and {new_address} is new.

        pay_fine settle_fine pay_ticket pay_penalty
        = Pay a fine. | Pays a parking ticket by its number. | Money to the city for a penalty.
        - reference|number|ticket: code; amount|sum|euros: #10-200
        Pay the fine {reference}, {amount} euros.
        fine {reference} {amount}
        I parked in the wrong place. {reference}, {amount} euros, pay it.
        The fine over {amount} euros has the number {reference}, please pay it.
        I owe the city {amount} euros for the ticket {reference}.
        {amount} euros for fine {reference}: pay
        I drove too fast, {amount} euros. The number on the letter is {reference}. Pay the fine.
        Settle my fine of {amount} euros (number {reference}).
        Please pay my penalty {reference}, it's {amount} euros.
        Under the number {reference} I have a fine to pay, {amount} euros.

        get_waste_collection waste_dates garbage_day bin_day
        = When waste is collected in a street. | Returns the days on which bins are emptied.
        = Waste calendar by kind of waste.
        - street|address|where: street; +kind|waste|type: =paper,glass,plastic,garden
        When are the bins emptied at {street}?
        bin day {street}
        We live at {street}. When does the waste go?
        When is {kind} collected at {street}?
        Which day do they take the {kind} waste at {street}?
        My bins are full! When do they come to {street}?
        {street}, {kind}: when?
        On what day must I put the bins out at {street}?
        Is the rubbish of {street} fetched this week?
        Tell me the next waste collection for {street}.

        request_parking_permit parking_permit resident_parking apply_parking
        = Apply for a parking permit. | Requests that a car may park in a zone. | Residents' parking by plate.
        - plate|car|number_plate: plate; zone|area|district: =A,B,C,D; +months|duration: #1-24
        I need a parking permit for {plate} in zone {zone}.
        parking permit {plate}, zone {zone}
        My car {plate} should be allowed to park in zone {zone}.
        Zone {zone} is where I live and {plate} is my car. Get me a permit.
        Apply for resident parking: zone {zone}, car {plate}
        Let {plate} park in zone {zone} for {months} months.
        I got another ticket! {plate} needs a permit for zone {zone}.
        Could {plate} have a permit for zone {zone}?
        For {months} months I want to park {plate} in zone {zone}.
        Please request a permit, {plate}, zone {zone}.

        apply_passport request_passport new_passport passport_application
        = Apply for a passport. | Requests a new passport for a person. | Papers for travelling, normal or express.
        - person|name|applicant: name; +express|urgent|fast: ?quickly/without hurry
        {person} needs a new passport.
        passport for {person}
        Apply for a passport for {person}.
        My daughter {person} has no passport yet, but wants to travel.
        {person} needs a passport {express}.
        The passport of {person} has run out, get another one.
        Request a passport for {person}, {express} please.
        Could you order a passport for {person}?
        {person}'s passport was stolen, we need a new one.
        New papers, please: a passport for {person}
        """,
    ),
    _family(
        "shop",
        "place_order search_products get_price check_stock add_to_shopping_list cancel_order "
        "refund_order get_order_status apply_coupon write_review track_package buy_groceries "
        "update_price update_address get_user",
        """add_to_cart put_in_cart cart_add add_to_basket
        = Put a product into the cart. | Adds to the shopping cart of the web shop.
        = Cart only, nothing is bought yet.
        - product|item|article: items; quantity|count|amount: few
        Put {quantity} {product} into my cart.
        {quantity} {product} -> cart
        I might buy {quantity} {product}, put them in the cart.
        My cart should have {quantity} {product} in it.
        Add {quantity} {product} to the basket of the shop.
        {product}, {quantity} of them, into the cart please.
        Into my basket: {quantity} {product}
        Could you lay {quantity} {product} in my cart? I'll pay later.
        Let me have {quantity} {product} in the cart for now.
        Cart: {quantity} more {product}

        remove_from_cart cart_remove take_out_of_cart delete_from_basket
        = Take a product out of the cart. | Removes from the shopping cart of the web shop.
        = The cart loses an article.
        - product|item|article: items
        Take the {product} out of my cart.
        no {product} in the cart
        I don't want the {product} any more, remove them from the cart.
        My cart is too expensive, the {product} can go.
        Remove {product} from the basket.
        Please throw the {product} out of my cart.
        I put {product} into the cart by mistake, take them out.
        Without {product}, please. They're in my cart.
        The {product} in my cart were a mistake.
        Delete {product} from my shopping cart.

        return_item send_back return_product request_return
        = Send an article back. | Starts the return of something that was delivered. | Return with a reason.
        - order|order_number|order_id: code; reason|why: =too small,too large,broken,wrong color,not needed
        I want to send order {order} back, the reason: {reason}
        return {order}, {reason}
        What I got with order {order} is not right. Reason: {reason}. I'll send it back.
        Return order {order} as "{reason}".
        Order {order} goes back to you: {reason}
        Please take order {order} back. Reason for the return: {reason}
        {reason}! I'm sending back {order}.
        I'd like to return what came with {order}. Reason: {reason}
        My wife doesn't like it, so {order} goes back. Put "{reason}" as the reason.
        Start a return for order {order} with the reason {reason}.

        exchange_size change_size swap_size other_size
        = Exchange an article for another size. | Swaps clothes for a size that fits. | Exchange, no money back.
        - order|order_number|order_id: code; size|new_size|to: =S,M,L,XL
        I need order {order} in size {size}.
        {order}: {size} instead
        Exchange {order} for size {size}.
        What you sent with {order} doesn't fit. Size {size} would.
        My order {order} should have been {size}, please swap it.
        Swap the size of {order}, I need {size}.
        Could I have {order} in {size}?
        Please change order {order} to size {size}.
        Size {size}, please, for the shirt of order {order}.
        The trousers of order {order} don't fit, I'd take {size}.

        set_price_alert price_alert watch_price notify_price
        = Tell the user when a product gets cheap. | Sets a price alert. | Watches the price of an article.
        - product|item|article: items; price|below|max_price: amount
        Tell me when {product} cost less than {price} euros.
        price alert {product} {price}
        I'd buy {product} for {price} euros. Watch the price.
        Let me know if {product} fall below {price}.
        As soon as I can get {product} for {price} euros, tell me.
        {product} are too expensive now. At {price} euros I want to hear of it.
        Set an alert: {product}, {price} euros
        Keep an eye on {product}, I'm ready to pay {price} euros.
        When {product} get cheaper than {price} euros, give me a sign.
        Would you watch {product} for me? {price} euros is what I'd pay.

        compare_products compare versus compare_items
        = Compare two products. | Shows how two articles differ. | Which of two things is better.
        - first|a|product_a: items; second|b|product_b: items
        Compare {first} with {second}.
        {first} vs {second}
        Which are better, {first} or {second}?
        I can't decide between {first} and {second}.
        How do {first} and {second} differ?
        What speaks for {first}, what for {second}?
        Should I rather buy {first} or {second}? Compare them.
        Show me {first} beside {second}.
        Put {first} and {second} side by side.
        I want to see {first} compared to {second}.

        change_delivery_date reschedule_delivery delivery_day move_delivery
        = Have an order delivered on another day. | Changes the day of delivery.
        = Delivery date of an order; the address stays.
        - order|order_number|order_id: code; date|day|new_date: day
        Deliver order {order} on {date}.
        {order} on {date} instead
        I'm not at home on {~day}, bring {order} on {date}.
        Move the delivery of {order} to {date}.
        Could my order {order} come on {date}?
        {date} is better for the delivery of {order}.
        Please bring order {order} on {date}.
        Nobody opens the door before {date}, so deliver {order} then.
        I'd rather get {order} on {date}.
        Another delivery day for order {order}: {date}

        gift_wrap wrap_gift wrap_order gift_option
        = Wrap an order as a gift. | Gift paper for an order, with a card. | Makes a present of what was ordered.
        - order|order_number|order_id: code; +card_text|message|text: phrase
        Wrap order {order} as a gift.
        {order} is a present, wrap it.
        gift wrap {order}
        Order {order} is for a birthday. Put some nice paper around it.
        Please make a present of {order}, with a card: {card_text}
        Can you wrap up {order} in gift paper?
        I give {order} to {~name}, so it should look like a present.
        Gift paper for {order}, and write "{card_text}" on the card.
        It's a surprise! Wrap {order} nicely.
        For order {order}, gift wrapping please.
        """,
    ),
    _family(
        "chat",
        "post_message send_message create_poll block_number call_contact send_invitation create_event "
        "create_user delete_user set_language stop_music cancel_alarm send_email",
        """mute_chat silence_chat mute_group mute
        = Mute a chat for some hours. | No more sounds from a group. | Silences a chat, one stays a member.
        - chat|group|name: channel; hours|duration|for: few
        Mute {chat} for {hours} hours.
        {chat} quiet, {hours}h
        I don't want to hear from the chat {chat} for {hours} hours.
        The group {chat} drives me mad. {hours} hours of silence!
        For {hours} hours, no sound from {chat}, please.
        Silence the chat {chat}, {hours} hours.
        I have to work for {hours} hours, so mute {chat}.
        No more beeps from the group {chat}! {hours} hours are enough.
        Could {chat} leave me alone for {hours} hours?
        {hours} hours without the chat {chat}, please.

        unmute_chat chat_sound_on unmute_group unmute
        = Let a chat make sounds again. | Ends the muting of a group. | Hear a chat that was silent.
        - chat|group|name: channel
        Unmute {chat}.
        I want to hear from {chat} again.
        sound on for {chat}
        Let the chat {chat} beep again.
        I miss what they write in {chat}, because it's muted. Change that.
        {chat} need not be silent any longer.
        My holiday is over, so I'd like to be told of news in {chat} again.
        Please end the silence of the group {chat}.
        Why don't I hear {chat}? I must have muted it, undo that.
        Turn the sound of the chat {chat} on again.

        add_member add_to_group invite_to_channel group_add
        = Add a person to a group. | Makes somebody a member of a channel. | Lets a person read and write in a group.
        - group|channel|chat: channel; person|user|name|member: name
        Add {person} to the members of {group}.
        {person} should be in the group {group}.
        {group} + {person}
        Let {person} into the channel {group}.
        {person} can't read what we write in {group}. Change that.
        Make {person} a member of {group}.
        In {group}, we'd like to have {person}, too.
        {person} is new here and belongs in {group}.
        Please put {person} into the group {group}.
        Why isn't {person} in {group}? Add them.

        remove_member remove_from_group kick_from_channel group_remove
        = Remove a person from a group. | Somebody is no longer part of a channel. | Throws a member out.
        - group|channel|chat: channel; person|user|name|member: name
        Remove {person} from {group}.
        {person} should not be in the group {group} any more.
        {group} - {person}
        Throw {person} out of {group}.
        {person} writes only nonsense in {group}, out!
        We don't want {person} in {group} any longer.
        Take {person} out of the channel {group}, please.
        {person} has left the team, so {group} is not for them any more.
        In {group} there's {person}, who doesn't belong there. Remove them.
        Please see that {person} is no longer in {group}.

        schedule_post post_later plan_post timed_post
        = Publish a text later. | Schedules a post for a time. | Writes something online at a given time.
        - text|content|message: phrase; time|at|when: clock
        Post "{text}" at {time}.
        At {time}, publish this: {text}
        {time}: "{text}" (post)
        I'd like "{text}" to go online at {time}.
        Publish at {time}: {text}
        Let my followers read "{text}" at {time}.
        Not now, but at {time}, post "{text}".
        Schedule a post for {time}. It says "{text}".
        My post "{text}" should appear at {time}.
        Please put "{text}" online, but wait until {time}.

        set_status change_status status away_status
        = Set the user's status. | Shows others whether one is there. | Status of the user in the chat.
        - status|state|presence: =online:online,away:away,busy:busy,offline:offline; +until|end: clock
        Set my status to {status}.
        status {status}
        Show the others that I'm {status}.
        I'm {status}, and everybody may see it.
        My status should be {status}.
        Put me on {status} until {until}.
        Let people know by my status that I'm {status}.
        Until {until} I am {status}.
        Please change my status to {status}.
        Make it look as if I were {status}.
        """,
    ),
    _family(
        "hotel",
        "book_hotel book_room cancel_event start_vacuum find_restaurant create_ticket order_pizza "
        "lock_door unlock_door set_alarm call_taxi update_address book_table",
        """check_in_guest guest_arrival register_guest
        = Check a guest in. | Gives an arriving guest a room. | Hotel desk: arrival.
        - guest|name|person: name; room|room_number|number: #101-899; +nights|stay: few
        Check {guest} into room {room}.
        {guest} has arrived, room {room}.
        {guest} -> {room}
        {guest} is standing at the desk and gets room {room}.
        Give {guest} the key of {room}, a guest who has just come.
        New guest: {guest}, room {room}, {nights} nights
        Room {room} is for {guest}, who has arrived.
        {guest} stays with us for {nights} nights, in {room}.
        Please let {guest} have room {room}, the luggage is already here.
        Welcome {guest} and put them in room {room}.

        check_out_guest guest_departure room_departure
        = Check a guest out. | Frees a room when the guest leaves. | Hotel desk: departure.
        - room|room_number|number: #101-899; +minibar|extras: #2-60
        Check out room {room}.
        {room} leaves
        The guests of {room} are going home.
        Room {room} is free again, the guest has left.
        {room} checks out, with {minibar} euros for the minibar.
        They've given back the key of {room} and are off to the airport.
        Please do the departure of room {room}.
        The lady from {room} wants to pay {minibar} euros for drinks and leave.
        Room {room} is leaving today, make the bill.
        Check-out, room {room}

        request_cleaning clean_hotel_room housekeeping send_cleaner
        = Have a room cleaned. | Sends housekeeping to a room. | Hotel: cleaning and fresh towels.
        - room|room_number|number: #101-899; +time|at: clock
        Clean room {room}, please.
        housekeeping {room}
        I spilled coffee, could somebody clean {room}?
        Send the maid to {room}.
        {room} looks awful, somebody should clean it at {time}.
        Room {room} needs fresh towels and a clean floor.
        The guests of {room} say that it's dirty.
        At {time}, somebody could clean room {room}.
        Make up room {room}, please.
        Nobody has cleaned {room} today.

        order_room_service room_service food_to_room
        = Bring food to a room. | Orders room service. | Hotel kitchen: a dish for a room number.
        - dish|food|meal: dish; room|room_number|number: #101-899; +time|at: clock
        Bring {dish} to room {room}.
        {dish}, {room}
        I'm hungry. {dish} for room {room}, please.
        We're in {room} and would like {dish}.
        Room {room} orders {dish}.
        At {time}, {dish} for room {room}.
        Could I have {dish}? I'm in room {room}.
        Room service: {room}, {dish}
        To {room}, please: {dish} at {time}
        The gentleman in {room} would like to eat {dish} in his room.

        move_guest change_room other_room
        = Move a guest to another room. | Changes the room of guests. | Hotel: from one room number to another.
        - from_room|old_room|origin: #101-899; to_room|new_room|destination: #101-899
        Move the guest of {from_room} to {to_room}.
        {from_room} -> {to_room}
        The guests of {from_room} want another room, {to_room} is free.
        It's too loud in {from_room}, let them have {to_room}.
        Into {to_room}, please, with the family from {from_room}.
        The shower in {from_room} is broken, so its guest gets {to_room}.
        Give the people in {from_room} room {to_room} instead.
        {to_room} is nicer, so bring the guest from {from_room} there.
        From room {from_room} to room {to_room}: one guest
        Could those in {from_room} change to {to_room}?
        """,
    ),
    _family(
        "tools",
        "translate summarize_text define_word calculate open_website convert_units get_time days_until "
        "create_note write_file scan_code generate_password random_number run_code find_object "
        "search_books get_lyrics",
        """count_words word_count how_many_words
        = Count the words of a text. | Returns a number of words. | Length of a text in words, not letters.
        - text|content|input: phrase
        How many words are in "{text}"?
        word count: {text}
        Count the words of "{text}".
        "{text}" - how many words is that?
        I need to know how many words "{text}" has.
        Please count: how many words are there in "{text}"?
        My text is "{text}". How many words?
        Is "{text}" longer than three words? Count them.
        words in "{text}"?
        Could you count the words in "{text}"?

        reverse_text backwards reverse_string mirror_text
        = Turn a text around. | Returns the letters in reverse order. | Writes a text backwards.
        - text|content|input: oddword
        Write "{text}" backwards.
        {text} backwards
        What is "{text}" from back to front?
        Reverse the text "{text}".
        How does "{text}" read if you begin at its end?
        Turn "{text}" around, letter by letter.
        Spell {text} from the last letter to the first.
        reverse: {text}
        Please give me "{text}" in reverse order.
        My son wants to see "{text}" written backwards.

        uppercase_text to_upper capital_letters make_uppercase
        = Write a text in capital letters. | Returns the text in upper case. | Makes all letters big.
        - text|content|input: phrase
        Write "{text}" in capital letters.
        "{text}" in upper case
        CAPS please: {text}
        Make all letters of "{text}" big.
        I need "{text}" in capitals for a sign.
        How does "{text}" look in capital letters?
        Turn "{text}" into upper case.
        No small letters, please: {text}
        upper: {text}
        Could you put "{text}" in big letters?

        make_qr_code qr_code create_qr generate_qr
        = Make a QR code of an address. | Returns a picture that phones can read. | QR code for a link.
        - url|link|content: url; +size|pixels: #1-12*50
        Make a QR code for {url}.
        qr {url}
        I want people to scan something and get to {url}.
        Create a QR code of {url} with {size} pixels.
        A code for phones that leads to {url}, please.
        Put {url} in a QR code.
        For my poster I need {url} as a square that phones can read.
        {url} as QR, {size} pixels
        Could you turn {url} into a QR code?
        Guests should point their phone at it and see {url}.

        shorten_link shorten_url short_link tiny_url
        = Make a link shorter. | Returns a short address that leads to a long one. | Short links for messages.
        - url|link|long_url: url; +alias|name|custom: oddword
        Make {url} shorter.
        short link for {url}
        {url} is far too long, shorten it.
        Shorten {url}, please.
        I can't type {url} on a phone. Give me a short link.
        Shorten {url} and call it {alias}.
        A short address for {url}, named {alias}
        I want a shorter link than {url}.
        Could {url} become a short link?
        Nobody will remember {url}. Can you make a short one?

        convert_time time_in_zone what_time_there time_converter
        = What a time in one city is in another city. | Converts a time between places.
        = Time zones; not the time now.
        - time|at|clock: clock; from_city|from|origin: city; to_city|to|target: city
        When it is {time} in {from_city}, how late is it in {to_city}?
        {time} {from_city} time in {to_city}?
        We meet at {time} in {from_city} time. When is that in {to_city}?
        What is {time} in {from_city} for people in {to_city}?
        I'm in {to_city}. The show in {from_city} starts at {time}, when is that here?
        For somebody in {to_city}, when is {time} in {from_city}?
        Convert {time} from {from_city} to {to_city}.
        {to_city} clock when {from_city} has {time}?
        The call is at {time}, {from_city} time. Tell me the time in {to_city}.
        They phone from {from_city} at {time}. How late will it be in {to_city}?

        add_days date_plus_days date_after days_later
        = Which date it is some days after another. | Adds days to a date. | Date arithmetic.
        - date|start|from: iso; days|count|number: #2-120
        What date is {days} days after {date}?
        {date} + {days} days
        Which day is it {days} days after {date}?
        The bill of {date} is due in {days} days. Which date is that?
        Count {days} days from {date}.
        If I start on {date} and need {days} days, when am I done?
        {days} days from {date} on: which date?
        Add {days} days to {date}, please.
        It was sent on {date} and takes {days} days. What date will that be?
        When are {days} days over, beginning with {date}?
        """,
    ),
)

# Families whose requests may be meant for each other's tools.
CLOSE = frozenset(
    frozenset(pair.split())
    for pair in (
        "bank sales",
        "bank shop",
        "bank town",
        "chat game",
        "chat operations",
        "code database",
        "code operations",
        "database operations",
        "farm lab",
        "feast chat",
        "feast game",
        "feast hotel",
        "feast kitchen",
        "feast sport",
        "freight hotel",
        "freight shop",
        "freight travel",
        "game sport",
        "health lab",
        "home hotel",
        "home kitchen",
        "home lab",
        "hotel kitchen",
        "maps freight",
        "maps town",
        "media tools",
        "office chat",
        "office photo",
        "office sales",
        "office tools",
        "personnel feast",
        "personnel hotel",
        "school personnel",
        "shop sales",
        "town freight",
        "travel feast",
        "travel hotel",
        "travel shop",
    )
)

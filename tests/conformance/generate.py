"""Random requests to the Placement API for differ.py: mostly valid, some with a fault, in sequences that build on
each other."""
import copy
import json
import urllib.parse
import uuid

CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB", "PCPU"]
TRAITS = ["HW_CPU_X86_AVX", "HW_CPU_X86_VMX", "STORAGE_DISK_SSD", "MISC_SHARES_VIA_AGGREGATE"]
ACCEPTS = ["*/*", "application/json", "text/html", "text/plain", "application/*", "text/*", "image/png",
           "application/json;q=0", "application/json;q=0, */*", "text/html, application/json;q=0.5",
           "application/json, text/html;q=0.5", "text/html;q=0.1, application/json;q=0.1", "nonsense", "text/html;q=2",
           "text/html;level=1", "application/json;q=0.2, text/plain", "*/*;q=0", "*/*;q=0.5",
           "application/json; charset=utf-8", "APPLICATION/JSON", "text/html,", "application/json;q=0.0",
           "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/xml, text/plain;q=0.5"]
TYPES = ["text/plain", "application/json; charset=utf-8", "Application/JSON", "application/jsonx", "", None,
         "application/json;", "text/plain; charset=utf-8", "application/x-www-form-urlencoded", "json"]
VERSIONS = ["placement 1.40", "placement -1.0", "placement 1", "placement 1.2.3", "placement latest",
            "placement Latest", "1.20", "compute 2.1, placement 1.20", "placement 1.20, placement 1.3", "PLACEMENT 1.31",
            "placement 0.9", "placement +1.5", "placement 1.-0", "placement 1.05", "placement  1.20", "placement",
            "placement 1.x", "placement 2.0", "placement 1_0.5", "placement 1.1_0", "placement 01.20", "placement 1. 20",
            "placement 1.20 extra", ""]
CHANGES = [0, 1, 2, 4, 6, 7, 8, 10, 11, 12, 13, 14, 16, 18, 19, 20, 22, 24, 25, 27, 28, 30, 32, 34, 35, 36, 37, 38, 39]


class Request:
    """One request, ready to be sent twice."""

    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body
        self.text = None if body is None else body.decode("utf-8", "backslashreplace")


class Generator:
    """The requests of one round, over a few providers, consumers and names."""

    def __init__(self, random):
        self.random = random
        tag = random.getrandbits(32)
        self.tag = f"{tag:08X}"
        self.providers = [self.draw() for _ in range(5)]
        self.consumers = [self.draw() for _ in range(4)]
        self.aggregates = [self.draw() for _ in range(3)]
        self.traits = TRAITS[:3] + [f"CUSTOM_T{self.tag}_{n}" for n in range(3)]
        self.classes = CLASSES + [f"CUSTOM_C{self.tag}_{n}" for n in range(2)]
        self.known = set(self.providers + self.consumers + self.aggregates)
        self.diverged = False  # set when the two servers are no longer in one state
        self.made = set()  # paths of what the round has to remove
        self.generations = {}
        self.consumer_generations = {}

    def draw(self):
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def chance(self, of):
        return self.random.random() < of

    def pick(self, things):
        return self.random.choice(things)

    def some(self, things, least=1, most=3):
        count = self.random.randint(least, min(most, len(things)))
        return self.random.sample(things, count)

    # What a round consists of.

    def requests(self):
        """All requests of the round, one after the other; learn() is called with each answer."""
        for number, provider in enumerate(self.providers[:4]):
            if self.chance(0.9):
                body = {"name": f"n{self.tag}-{provider[:6]}", "uuid": provider}
                if f"/resource_providers/{self.providers[number // 2]}" in self.made:
                    body["parent_provider_uuid"] = self.pick([None, self.providers[number // 2]])
                yield self.request("POST", "/resource_providers", body, 39, clean=True)
                inventories = {name: self.record() for name in self.some(CLASSES, 2, 4)}
                body = {"resource_provider_generation": 0, "inventories": inventories}
                yield self.request("PUT", f"/resource_providers/{provider}/inventories", body, 39, clean=True)
        for _ in range(60):
            if not self.diverged:
                yield self.random_request()
        yield from self.clean_up()

    def clean_up(self):
        def delete(path):
            return Request("DELETE", path, {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}, None)
        for consumer in self.consumers:
            yield delete(f"/allocations/{consumer}")
        while self.made:  # children first, whatever the tree is
            before = len(self.made)
            for path in sorted(self.made):
                yield delete(path)
            if len(self.made) == before:
                break

    def learn(self, request, answer):
        """Remembers generations, so that later requests can name the right ones."""
        bare = request.path.split("?")[0]
        if request.method == "DELETE" and answer.status in (204, 404):
            self.made.discard(bare)
        if answer.status in (200, 201) and "location" in answer.headers:
            made = answer.headers["location"].split("/", 3)[-1]
            if "/inventories/" not in made:
                self.made.add("/" + made)
        if not isinstance(answer.body, dict):
            return
        generation = answer.body.get("resource_provider_generation", answer.body.get("generation"))
        parts = request.path.split("?")[0].split("/")
        if isinstance(generation, int):
            found = [part for part in parts if part in self.providers] or [answer.body.get("uuid")]
            self.generations[found[0]] = generation
        if parts[1] == "allocations" and request.method == "GET" and len(parts) == 3:
            self.consumer_generations[parts[2]] = answer.body.get("consumer_generation")

    # One request.

    def request(self, method, path, body, minor, clean=False):
        headers = {"x-auth-token": "admin", "openstack-api-version": f"placement 1.{minor}"}
        data = None
        if body is not None:
            headers["content-type"] = "application/json"
            data = json.dumps(body).encode()
        if not clean:
            if self.chance(0.1):
                headers["accept"] = self.pick(ACCEPTS)
            if self.chance(0.04):
                headers["openstack-api-version"] = self.pick(VERSIONS)
            if self.chance(0.02):
                del headers["openstack-api-version"]
            if self.chance(0.04):
                self.set(headers, "content-type", self.pick(TYPES))
            if self.chance(0.02):
                self.set(headers, "x-auth-token", self.pick([None, "user", "user:project", "", "admin:"]))
            if self.chance(0.02):
                headers["x-roles"] = self.pick(["reader", "service", "member,admin", ""])
            if data is not None and self.chance(0.04):
                data = self.spoil(data)
            if self.chance(0.03):
                path = self.spoil_path(path)
            if self.chance(0.03):
                method = self.pick(["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
        return Request(method, path, headers, data)

    @staticmethod
    def set(headers, name, value):
        headers.pop(name, None)
        if value is not None:
            headers[name] = value

    def spoil(self, data):
        return self.pick([b"", data[:-1], b"[" + data, b"{}", b"[]", b"null", b"\xff\xfe", b"\xef\xbb\xbf" + data,
                          b'"x"', b"1", data + b" x", data.replace(b": ", b": NaN, \"x\": ", 1), b'{"a":1,"a":2}'])

    def spoil_path(self, path):
        bare, mark, query = path.partition("?")
        return self.pick([bare + "/" + mark + query, "/" + path, bare + "/x", bare.replace("-", "", 1) + mark + query,
                          bare.upper(), bare + "%20", bare + mark + query + ("&" if mark else "?") + "x=1",
                          bare + "?%ff=1", bare.replace("/", "//", 1), bare + "%2Fx", bare + "?"])

    def random_request(self):
        make = self.pick([
            self.providers_list, self.provider_create, self.provider_show, self.provider_update, self.provider_delete,
            self.inventories, self.inventories_put, self.inventories_put, self.inventory_post, self.inventory_put,
            self.inventory_other, self.aggregates_get, self.aggregates_put, self.provider_traits,
            self.provider_traits_put, self.traits_list, self.trait, self.trait, self.classes_list, self.class_post,
            self.class_one, self.allocations_get, self.allocations_put, self.allocations_put, self.allocations_put,
            self.allocations_post, self.allocations_post, self.allocations_delete, self.usages, self.candidates,
            self.candidates, self.candidates, self.reshaper, self.reshaper, self.provider_usages, self.nowhere])
        minor = self.pick(CHANGES) if self.chance(0.6) else self.random.randint(28, 39)
        method, path, body = make(minor)
        if body is not None and self.chance(0.2):
            body = self.mutate(body)
        return self.request(method, path, body, minor)

    def mutate(self, body):
        """The body with one fault somewhere."""
        body = copy.deepcopy(body)
        places = list(self.places(body))
        if not places:
            return self.odd()
        holder, key = self.pick(places)
        if isinstance(holder, dict):
            what = self.random.randrange(5)
            if what == 0:
                del holder[key]
            elif what == 1:
                holder[self.pick(["extra", "", "x y", "ZZ", key + "x", self.draw()])] = self.odd()
            elif what == 2 and isinstance(key, str):
                holder[key.swapcase()] = holder.pop(key)
            else:
                holder[key] = self.odd()
        else:
            what = self.random.randrange(3)
            if what == 0:
                del holder[key]
            elif what == 1:
                holder.append(copy.deepcopy(holder[key]))
            else:
                holder[key] = self.odd()
        return body

    def places(self, value):
        if isinstance(value, dict):
            for key in value:
                yield value, key
                yield from self.places(value[key])
        elif isinstance(value, list):
            for key in range(len(value)):
                yield value, key
                yield from self.places(value[key])

    def odd(self):
        return self.pick([None, True, False, 0, 1, -1, 2, 1.0, 1.5, 2147483647, 2147483648, 10**20, 1e300, "", "x",
                          "a" * 201, "a" * 256, "é", [], {}, [1], ["x"], {"x": 1}, [[]], "CUSTOM_X", "VCPU", "vcpu",
                          self.pick(self.providers), self.pick(self.providers).upper(), "x" * 36, -5, "<b>x</b>",
                          "quote'd", 'dou"ble', "back\\slash", "line\nfeed", "NaN", 1e-5, 123456789012.5])

    # Names.

    def provider(self):
        return self.pick(self.providers) if self.chance(0.93) else self.pick(
            [self.draw(), "foo", self.pick(self.providers).upper(), self.pick(self.providers).replace("-", "")])

    def consumer(self):
        return self.pick(self.consumers) if self.chance(0.95) else self.pick(
            ["foo", self.pick(self.consumers).upper(), self.pick(self.consumers).replace("-", "")])

    def trait_name(self):
        return self.pick(self.traits) if self.chance(0.93) else self.pick(["FOO", "CUSTOM_", "custom_x", "CUSTOM_é", ""])

    def class_name(self):
        return self.pick(self.classes) if self.chance(0.95) else self.pick(["FOO", "CUSTOM_", "vcpu", "é", "VCPU "])

    def generation(self, provider):
        right = self.generations.get(provider, 0)
        return right if self.chance(0.9) else self.pick([right + 1, 0, 99])

    # Providers.

    def provider_body(self, provider, minor=39):
        body = {"name": f"n{self.tag}-{provider[:6]}"}
        if self.chance(0.9):
            body["uuid"] = provider
        if minor >= 14 and self.chance(0.5):
            body["parent_provider_uuid"] = self.pick([*self.providers, None, self.draw()])
        if self.chance(0.05):
            body["name"] = self.pick(["", "é", "x" * 201, f"n{self.tag}-{self.pick(self.providers)[:6]}"])
        return body

    def provider_create(self, minor):
        return "POST", "/resource_providers", self.provider_body(self.provider(), minor)

    def provider_show(self, _):
        return "GET", f"/resource_providers/{self.provider()}", None

    def provider_update(self, minor):
        body = self.provider_body(self.provider(), minor)
        body.pop("uuid", None)
        return "PUT", f"/resource_providers/{self.provider()}", body

    def provider_delete(self, _):
        return "DELETE", f"/resource_providers/{self.provider()}", None

    def provider_usages(self, _):
        kind = self.pick(["usages", "allocations"])
        return "GET", f"/resource_providers/{self.provider()}/{kind}", None

    def query(self, pairs):
        if not pairs:
            return ""
        self.random.shuffle(pairs)
        if self.chance(0.04):
            pairs.append(self.pick([("bogus", "1"), ("", ""), ("limit", "x"), ("name", "é"), ("resources", "")]))
        if self.chance(0.04):
            pairs.append(self.pick(pairs))
        return "?" + urllib.parse.urlencode(pairs, safe=":,!")

    def providers_list(self, minor):
        pairs = [("in_tree", self.pick(self.providers))] if minor >= 14 else [("uuid", self.pick(self.providers))]
        if self.chance(0.3):
            pairs = [("uuid", self.provider())]
        if self.chance(0.2):
            pairs.append(("name", f"n{self.tag}-{self.pick(self.providers)[:6]}"))
        if minor >= 3 and self.chance(0.3):
            pairs.append(("member_of", self.member_of(minor)))
        if minor >= 4 and self.chance(0.3):
            pairs.append(("resources", self.resources()))
        if minor >= 18 and self.chance(0.3):
            pairs.append(("required", self.required(minor)))
        return "GET", "/resource_providers" + self.query(pairs), None

    # Inventories.

    def record(self):
        record = {"total": self.pick([1, 4, 8, 16, 100])}
        for name, values in (("reserved", [0, 1, 2]), ("min_unit", [1, 1, 2]), ("max_unit", [8, 100, 2147483647]),
                             ("step_size", [1, 1, 2]), ("allocation_ratio", [1.0, 2.0, 1.5, 16, 0.5, -1.0, 0.1])):
            if self.chance(0.35):
                record[name] = self.pick(values)
        return record

    def inventories(self, _):
        provider = self.provider()
        kind = self.pick([("GET", ""), ("GET", ""), ("DELETE", ""), ("GET", f"/{self.class_name()}")])
        return kind[0], f"/resource_providers/{provider}/inventories" + quoted(kind[1]), None

    def inventories_put(self, _):
        provider = self.provider()
        records = {self.class_name(): self.record() for _ in range(self.random.randint(0, 4))}
        body = {"resource_provider_generation": self.generation(provider), "inventories": records}
        return "PUT", f"/resource_providers/{provider}/inventories", body

    def inventory_post(self, _):
        return ("POST", f"/resource_providers/{self.provider()}/inventories",
                {"resource_class": self.class_name(), **self.record()})

    def inventory_put(self, _):
        provider = self.provider()
        return ("PUT", f"/resource_providers/{provider}/inventories" + quoted(f"/{self.class_name()}"),
                {"resource_provider_generation": self.generation(provider), **self.record()})

    def inventory_other(self, _):
        path = f"/resource_providers/{self.provider()}/inventories" + quoted(f"/{self.class_name()}")
        return self.pick(["GET", "DELETE"]), path, None

    # Aggregates and traits.

    def aggregates_get(self, _):
        return "GET", f"/resource_providers/{self.provider()}/aggregates", None

    def aggregates_put(self, minor):
        provider = self.provider()
        body = self.some(self.aggregates, 0, 3)
        if minor >= 19:
            body = {"aggregates": body, "resource_provider_generation": self.generation(provider)}
        return "PUT", f"/resource_providers/{provider}/aggregates", body

    def provider_traits(self, _):
        return self.pick(["GET", "GET", "DELETE"]), f"/resource_providers/{self.provider()}/traits", None

    def provider_traits_put(self, _):
        provider = self.provider()
        names = [self.trait_name() for _ in range(self.random.randint(0, 3))]
        if self.chance(0.1):
            names.append("MISC_SHARES_VIA_AGGREGATE")
        body = {"traits": names, "resource_provider_generation": self.generation(provider)}
        return "PUT", f"/resource_providers/{provider}/traits", body

    def traits_list(self, _):
        pairs = [("name", self.pick([f"in:{','.join(self.some(self.traits))}", f"startswith:CUSTOM_T{self.tag}", "x",
                                     "in:", "startswith:", "bogus:x", ""]))]
        if pairs[0][1] in ("bogus:x", "startswith:", ""):
            pairs = [("name", f"startswith:CUSTOM_T{self.tag}")]
        if self.chance(0.4):
            pairs.append(("associated", self.pick(["true", "false", "TRUE", "x", ""])))
        return "GET", "/traits" + self.query(pairs), None

    def trait(self, _):
        return self.pick(["PUT", "PUT", "GET", "DELETE"]), quoted(f"/traits/{self.trait_name()}"), None

    # Classes.

    def classes_list(self, _):
        return "GET", "/resource_classes", None

    def class_post(self, _):
        return "POST", "/resource_classes", {"name": self.class_name()}

    def class_one(self, minor):
        method = self.pick(["PUT", "PUT", "GET", "DELETE"])
        body = {"name": self.class_name()} if method == "PUT" and minor < 7 else None
        return method, quoted(f"/resource_classes/{self.class_name()}"), body

    # Allocations.

    def resources_body(self):
        return {self.class_name(): self.pick([1, 1, 2, 2, 3, 4, 50]) for _ in range(self.random.randint(1, 2))}

    def allocations_body(self, minor, consumer, empty=True):
        providers = [self.provider() for _ in range(self.random.randint(0 if empty else 1, 2))]
        if minor < 12:
            listed = [{"resource_provider": {"uuid": provider}, "resources": self.resources_body()}
                      for provider in providers]
            body = {"allocations": listed}
        else:
            body = {"allocations": {provider: {"resources": self.resources_body()} for provider in providers}}
        if minor >= 8:
            body["project_id"] = f"p{self.tag}-{self.pick('12')}"
            body["user_id"] = f"u{self.tag}-{self.pick('12')}"
        if minor >= 28:
            right = self.consumer_generations.get(consumer)
            body["consumer_generation"] = right if self.chance(0.9) else self.pick([None, 0, 1, 7])
        if minor >= 34 and self.chance(0.2):
            body["mappings"] = {"_X": [self.pick(self.providers)]}
        if minor >= 38:
            body["consumer_type"] = self.pick(["INSTANCE", "MIGRATION", "INSTANCE", "unknown"])
        return body

    def allocations_get(self, _):
        return "GET", f"/allocations/{self.consumer()}", None

    def allocations_put(self, minor):
        consumer = self.consumer()
        return "PUT", f"/allocations/{consumer}", self.allocations_body(minor, consumer, self.chance(0.15))

    def allocations_post(self, minor):
        consumers = self.some(self.consumers)
        body = {consumer: self.allocations_body(max(minor, 12), consumer) for consumer in consumers}
        return "POST", "/allocations", body

    def allocations_delete(self, _):
        return "DELETE", f"/allocations/{self.consumer()}", None

    def usages(self, minor):
        pairs = [("project_id", f"p{self.tag}-{self.pick('123')}")]
        if self.chance(0.3):
            pairs.append(("user_id", f"u{self.tag}-{self.pick('123')}"))
        if minor >= 38 and self.chance(0.5):
            pairs.append(("consumer_type", self.pick(["INSTANCE", "MIGRATION", "all", "unknown", "x", "", "alligator"])))
        return "GET", "/usages" + self.query(pairs), None

    def reshaper(self, minor):
        body = {"inventories": {}, "allocations": {}}
        for provider in {self.provider() for _ in range(self.random.randint(1, 3))}:
            records = {self.class_name(): self.record() for _ in range(self.random.randint(0, 3))}
            body["inventories"][provider] = {"inventories": records,
                                             "resource_provider_generation": self.generation(provider)}
        for consumer in self.some(self.consumers, 0, 2):
            body["allocations"][consumer] = self.allocations_body(max(minor, 30), consumer)
        return "POST", "/reshaper", body

    # Queries.

    def resources(self):
        parts = [f"{self.class_name()}:{self.pick([1, 1, 2, 4, 50])}" for _ in range(self.random.randint(1, 2))]
        if self.chance(0.05):
            parts.append(self.pick(["VCPU", "VCPU:x", "VCPU:0", "VCPU:-2", "", "VCPU:1:2", ":1", "VCPU: 1", "VCPU:1.0",
                                    "VCPU:+1", "VCPU:1_0"]))
        return ",".join(parts)

    def required(self, minor):
        names = self.some(self.traits, 1, 2)
        if self.chance(0.05):
            names.append(self.pick(["", "FOO", "!", "!!HW_CPU_X86_AVX", "in:X", " HW_CPU_X86_AVX "]))
        if minor >= 39 and self.chance(0.3):
            return "in:" + ",".join(names)
        if self.chance(0.3 if minor >= 22 else 0.05):
            names[0] = "!" + names[0]
        return ",".join(names)

    def member_of(self, minor):
        names = self.some(self.aggregates, 1, 2)
        prefix = "!" if self.chance(0.3 if minor >= 32 else 0.03) else ""
        if self.chance(0.05):
            names[0] = self.pick(["foo", "", self.aggregates[0].upper(), self.aggregates[0].replace("-", ""), "!x"])
        if len(names) > 1 and self.chance(0.95) or self.chance(0.2):
            prefix += "in:"
        return prefix + ",".join(names)

    def candidates(self, minor):
        minor = max(minor, 10)
        suffixes = [""]
        if minor >= 25 and self.chance(0.5):
            names = ["1", "2"] if minor < 33 or self.chance(0.5) else ["_A", "_B-c"]
            suffixes = self.some(["", *names], 1, 3)
        pairs = []
        for suffix in suffixes:
            if minor < 36 or self.chance(0.85):
                pairs.append((f"resources{suffix}", self.resources()))
            if minor >= 17 and self.chance(0.25):
                pairs.append((f"required{suffix}", self.required(minor)))
            if minor >= 21 and self.chance(0.2):
                pairs.append((f"member_of{suffix}", self.member_of(minor)))
            if minor >= 31:  # keeps what other rounds left out of the answer
                pairs.append((f"in_tree{suffix}", self.provider()))
        if minor >= 16 and self.chance(0.03):
            pairs.append(("limit", self.pick(["0", "-1", "x", "01", "99999999999999999999", ""])))
        if minor >= 25 and (len(suffixes) > 1 or self.chance(0.2)) and self.chance(0.95):
            pairs.append(("group_policy", self.pick(["none", "isolate", "none", "x"])))
        if minor >= 35 and self.chance(0.15):
            pairs.append(("root_required", self.required(38)))
        if minor >= 36 and self.chance(0.2):
            pairs.append(("same_subtree", ",".join(self.some([*suffixes, "_A", "_Z"], 1, 2))))
        return "GET", "/allocation_candidates" + self.query(pairs), None

    def nowhere(self, _):
        return (self.pick(["GET", "PUT", "POST", "DELETE", "HEAD"]),
                self.pick(["/nothing", "/", "", "/traits/", "/resource_providers", "/allocations", "/reshaper", "/usages",
                           "/allocation_candidates", "/resource_classes/VCPU/x", "/traits", "/resource_classes"]) or "/",
                self.pick([None, {"x": 1}]))


def quoted(path):
    """A path with what is no ASCII escaped."""
    return urllib.parse.quote(path)

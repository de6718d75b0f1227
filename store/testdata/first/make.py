#!/usr/bin/env python3
"""make.py NODEST FOLDER: makes what the other files of this folder are; see README.md.

NODEST is a program built of 796afa4c. It serves a new data folder, is filled over its API, and
what it answers is written to FOLDER/answers.jsonl.gz, its backup to FOLDER/backup.zip, and a
folder without anything but the schema to FOLDER/empty.db.gz. All texts are made up here.
"""

import atexit, base64, gzip, json, os, pathlib, re, shutil, signal, struct, subprocess, sys, tempfile, time, urllib.error, urllib.request, uuid, zlib

nodest, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
temp = pathlib.Path(tempfile.mkdtemp())
data = temp / "data"
env = {"NODEST_DATA": str(data), "NODEST_PROVIDER": "offline", "NODEST_OFFLINE_DELAY": "1ms", "NODEST_ADDR": "127.0.0.1:0",
       "NODEST_LOG_LEVEL": "error", "HOME": str(temp), "PATH": os.environ["PATH"],
       "NODEST_DATABASE_URL": os.environ.get("FIXTURE_DATABASE_URL", "")}
base = ""
tokens = {}
keys = 0


def serve():
    global base
    server = subprocess.Popen([nodest, "serve"], env=env, stdout=subprocess.PIPE, text=True)
    atexit.register(server.kill)
    for line in server.stdout:
        if " listens on " in line:
            base = line.split(" listens on ")[1].strip()
        if "/signin#" in line:
            break
    tokens["owner"] = (data / "cli.token").read_text().strip()
    return server


def stop(server):
    server.send_signal(signal.SIGTERM)
    server.wait()


def call(method, path, body=None, who="owner", content="application/json", key=True, raw=False):
    global keys
    headers = {"Authorization": "Bearer " + tokens[who]}
    if body is not None:
        headers["Content-Type"] = content
        body = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    if key and method != "GET":
        keys += 1
        headers["Idempotency-Key"] = f"key-{keys}"
    req = urllib.request.Request(base + "/api/v1" + path, body, headers, method=method)
    try:
        with urllib.request.urlopen(req) as res:
            text = res.read()
    except urllib.error.HTTPError as e:
        sys.exit(f"{method} {path}: {e.code} {e.read().decode()}")
    return text if raw else json.loads(text) if text else None


def upload(path, name, content, who="owner", method="POST", **fields):
    edge = uuid.uuid4().hex
    parts = b"".join(f'--{edge}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items())
    parts += f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + content + f"\r\n--{edge}--\r\n".encode()
    return call(method, path, parts, who, "multipart/form-data; boundary=" + edge)


def picture(width, height, colour):
    chunk = lambda kind, b: struct.pack(">I", len(b)) + kind + b + struct.pack(">I", zlib.crc32(kind + b))
    rows = (b"\0" + bytes(colour) * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def send(chat, text, **more):
    return call("POST", f"/conversations/{chat}/messages", {"text": text, **more})


def rest(who="owner"):
    """Waits until no job is open."""
    for _ in range(120):
        jobs = call("GET", "/jobs?limit=100", who=who)["items"]
        busy = [j for j in jobs if j["state"] in ("queued", "running") and not j["kind"].startswith("circle.")]
        if not busy:
            return
        for j in busy:
            if j["kind"] == "memory.extract" and j["state"] == "queued":
                call("POST", f"/conversations/{j['subject']}/memory/extract", who=who)
        time.sleep(0.5)
    sys.exit(f"jobs do not end: {busy}")


def pages(path, who="owner"):
    """All pages of a list, as paths."""
    paths, cursor = [], ""
    while True:
        at = path + ("&" if "?" in path else "?") + "limit=100" + (f"&cursor={cursor}" if cursor else "")
        paths.append(at)
        cursor = call("GET", at, who=who).get("nextCursor") or ""
        if not cursor:
            return paths


CARD = {"name": "Ilka", "description": "Ilka keeps the lighthouse of Varn. She counts ships, not days.", "personality": "dry, patient",
        "scenario": "A storm is two hours away.", "first_mes": "You are late, {{user}}. The lamp is lit.", "mes_example": "<START>\n{{user}}: Hello.\n{{char}}: Mind the stairs.",
        "alternate_greetings": ["The sea is loud tonight.", "日本語で話しましょうか。"], "tags": ["sea", "storm"], "creator_notes": "For tests."}
BOOK = {"entries": {"0": {"uid": 0, "key": ["lamp"], "content": "The lamp of Varn burns whale oil.", "constant": False, "order": 10, "comment": "lamp"},
                    "1": {"uid": 1, "key": ["storm", "wind"], "content": "Storms come from the north-west.", "constant": True, "order": 20, "comment": "weather"}}}
PRESET = {"temperature": 0.8, "prompts": [{"identifier": "main", "name": "Main", "role": "system", "content": "Write the next reply of {{char}}. Be brief."}],
          "prompt_order": [{"character_id": 100001, "order": [{"identifier": "main", "enabled": True}, {"identifier": "chatHistory", "enabled": True}]}]}
REGEX = [{"scriptName": "stars", "findRegex": "/\\*\\*/g", "replaceString": "*", "placement": [2], "markdownOnly": True}]


def library():
    ilka = call("POST", "/characters", {"roleCard": CARD, "worldBook": BOOK, "preset": PRESET, "regexScripts": REGEX, "authorNote": {"content": "Keep it short.", "depth": 3}})["id"]
    call("PATCH", f"/characters/{ilka}", {"roleCard": {**CARD, "personality": "dry, patient, curious"}})
    upload(f"/characters/{ilka}/avatar", "ilka.png", picture(12, 16, (40, 80, 160)), method="PUT")
    call("PATCH", f"/characters/{ilka}", {"tags": ["lighthouse", "north"]})
    bo = call("POST", "/characters", {"roleCard": {"name": "Bo", "description": "Bo sails the mail boat.", "first_mes": "Mail!"}})["id"]
    sample = call("POST", "/characters/sample")["id"]
    gone = call("POST", "/characters", {"roleCard": {"name": "Nobody", "first_mes": "?"}})["id"]
    call("DELETE", f"/characters/{gone}")
    book = call("POST", "/worldbooks", {"name": "Harbour", "document": BOOK, "characterIds": [ilka, bo]})["id"]
    call("PUT", f"/worldbooks/{book}", {"name": "Harbour", "document": {"entries": {"0": {"key": ["quay"], "content": "The quay is of oak."}}}, "characterIds": [ilka]})
    call("POST", "/presets", {"name": "Brief", "document": PRESET, "bindAll": False})
    call("POST", "/regexscripts", {"name": "Stars", "document": REGEX[0], "bindAll": True})
    persona = call("POST", "/personas", {"document": {"name": "Mia", "description": "Mia repairs radios."}})["id"]
    call("PUT", "/settings", {"personaId": persona, "timeZone": "Europe/Berlin", "userName": "Mia"})
    call("PUT", "/providers/gemini/key", {"key": "key-of-the-owner"})
    return ilka, bo, sample


def chats(ilka, bo):
    first = call("POST", "/conversations", {"characterId": ilka, "title": "At the lighthouse"})["id"]
    facts = [call("POST", f"/characters/{ilka}/memories", {"text": t, **more})["id"] for t, more in [
        ("Mia's sister Clara lives in Oslo.", {"pinned": True}), ("Mia is afraid of deep water.", {}), ("Mia plays the cello.", {}),
        ("Mia drinks tea without sugar.", {"importance": 0.9}), ("Mia's boat is called Fennel.", {})]]
    call("PATCH", f"/characters/{ilka}/memories/{facts[1]}", {"text": "Mia is no longer afraid of deep water."})
    call("DELETE", f"/characters/{ilka}/memories/{facts[2]}")
    call("PATCH", f"/characters/{ilka}/memories/{facts[3]}", {"locked": True})
    secret = call("POST", f"/characters/{ilka}/memories", {"text": "Mia hides a key under the mat."})["id"]
    call("DELETE", f"/characters/{ilka}/memories/{secret}?purge=true")
    for text in ["My name is Mia and I repair radios.", "I live in Bergen with my dog Rufus.", "On Tuesday we found an old radio in the cellar.",
                 "My birthday is on the 4th of May.", "日本の友達は大阪に住んでいます。"]:
        sent = send(first, text)
    reply = sent["message"]["id"]
    call("POST", f"/messages/{reply}/regenerate")
    call("POST", f"/messages/{reply}/regenerate")
    call("POST", f"/messages/{reply}/swipe", {"swipe": call("GET", f"/messages/{reply}")["swipes"][0]["id"]})
    call("POST", f"/messages/{reply}/continue")
    save = call("POST", f"/conversations/{first}/saves", {"description": "before the storm"})["id"]
    sent = send(first, "Where does my sister live?")
    call("PATCH", f"/messages/{sent['userMessage']['id']}", {"text": "Where does my sister Clara live?", "regenerate": True})
    call("PATCH", f"/messages/{sent['userMessage']['id']}", {"text": "What is my boat called?", "mode": "branch", "regenerate": True})
    call("PATCH", f"/messages/{reply}", {"text": "Edited: the lamp is lit, and the sea is calm."})
    second = call("POST", f"/conversations/{first}/saves", {"description": "after a branch"})["id"]
    call("POST", f"/saves/{save}/restore")
    late = send(first, "What do you know about my dog and my radio?")
    call("DELETE", f"/messages/{send(first, 'This is deleted.', reply=False)['userMessage']['id']}")
    back = send(first, "This is deleted and restored.", reply=False)["userMessage"]["id"]
    call("DELETE", f"/messages/{back}")
    call("POST", f"/messages/{back}/restore")
    call("PATCH", f"/conversations/{first}", {"tags": ["storm"], "authorNote": {"content": "It rains.", "depth": 2}, "settings": {"temperature": 0.5}})
    fork = call("POST", f"/conversations/{first}/fork", {"messageId": late["message"]["id"]})["id"]
    send(fork, "And in the other story, where does Clara live?")

    long = call("POST", "/conversations", {"characterId": ilka})["id"]
    for n in range(12):
        send(long, f"On day {n + 1} we crossed the sound and met a pilot who told us about wreck number {n + 1} and its cargo.", reply=False)
    made = call("POST", f"/conversations/{long}/summaries?wait=1")
    call("PATCH", f"/conversations/{long}/summaries/{made['id']}", {"summary": "Mia crossed the sound for twelve days and met many pilots."})
    send(long, "What happened on the sound?")
    for n in range(8):
        send(long, f"Back home, on evening {n + 1}, we sorted the charts and found island {n + 1}.", reply=False)
    call("POST", f"/conversations/{long}/summaries?wait=1")
    send(long, "Which islands did we find?")
    call("POST", f"/conversations/{long}/saves", {"description": "with a summary"})

    archive = call("GET", f"/conversations/{first}/export?format=json", raw=True)
    upload("/conversations/import", "archive.json", archive, characterId=ilka)
    odd = re.sub(rb'"(id|parentId|generationId|revisionId|headId)":"[0-9a-f]{8}-', rb'"\1":"odd-', call("GET", f"/conversations/{fork}/export?format=json", raw=True))
    upload("/conversations/import", "odd.json", odd, characterId=bo)
    log = [{"user_name": "Mia", "character_name": "Bo", "create_date": "2026-01-02@10h00m00s", "chat_metadata": {"note_prompt": "Bo is tired.", "note_depth": 4, "custom": {"kept": [1, 2.50]}}},
           {"name": "Bo", "is_user": False, "send_date": "January 2, 2026 10:00am", "mes": "Mail!", "extra": {"unknown": "kept"}},
           {"name": "Mia", "is_user": True, "send_date": "January 2, 2026 10:01am", "mes": "A parcel?", "extra": {}},
           {"name": "Bo", "is_user": False, "send_date": "January 2, 2026 10:02am", "mes": "Two.", "swipes": ["One.", "Two.", "Three."], "swipe_id": 1,
            "swipe_info": [{"send_date": "January 2, 2026 10:02am", "extra": {"model": "old"}}] * 3, "odd": {"b": 1, "a": 2}}]
    imported = upload("/conversations/import", "Bo.jsonl", "\n".join(json.dumps(l, ensure_ascii=False) for l in log).encode(), characterId=bo)["id"]
    send(imported, "Who sent them?")
    lines = [{"user_name": "Mia", "character_name": "Bo", "chat_metadata": {}}]
    lines += [{"name": ["Bo", "Mia"][n % 2], "is_user": n % 2 == 1, "send_date": f"2026-01-03T10:{n % 60:02}:00Z", "mes": f"Letter {n} is for house {n * 3}."} for n in range(120)]
    upload("/conversations/import", "Letters.jsonl", "\n".join(map(json.dumps, lines)).encode(), characterId=bo)
    saved = call("GET", f"/saves/{second}/export", raw=True)
    upload(f"/conversations/{imported}/saves/import", "save.json", saved)
    gone = call("POST", "/conversations", {"characterId": bo})["id"]
    send(gone, "This chat is deleted.")
    call("DELETE", f"/conversations/{gone}")
    call("POST", f"/conversations/{first}/memory/extract")
    rest()
    call("POST", f"/conversations/{long}/memory/extract")
    rest()
    send(first, "I live in Tromsø now, not in Bergen.")
    call("POST", f"/conversations/{first}/memory/extract")
    rest()
    send(call("POST", "/conversations", {"characterId": ilka})["id"], "Do you remember what we found in the cellar, and the pilot of the wreck?")


def documents(ilka, alice):
    kb = call("POST", "/knowledge-bases", {"name": "Harbour", "description": "Papers of the harbour."})["id"]
    text = "# The light\n\nThe light of Varn was automated in March 1987. Before that, Maren Oduya kept it for twenty years.\n\n" + \
        "\n\n".join(f"## Ship {n}\n\nShip {n} carried {n * 7} barrels of herring from Varn to Bergen in {1900 + n}." for n in range(1, 25))
    file = upload("/files", "harbour.md", text.encode(), knowledgeBaseId=kb)["file"]["id"]
    full = upload("/files", "rules.txt", "The quay closes at nine. Dogs are welcome.\n".encode())["file"]["id"]
    dead = upload("/files", "gone.txt", b"Nothing to see.\n")["file"]["id"]
    rest()
    call("PUT", f"/characters/{ilka}/knowledge/{kb}")
    call("PUT", f"/characters/{ilka}/files/{full}", {"position": 2})
    call("PUT", f"/knowledge-bases/{kb}/grants/{alice}", {"role": "read"})
    call("DELETE", f"/files/{dead}")
    chat = call("POST", "/conversations", {"characterId": ilka, "title": "Papers"})["id"]
    call("POST", "/knowledge/ask", {"question": "When was the light automated?", "knowledgeBaseIds": [kb]})
    send(chat, "When was the light of Varn automated, and who kept it before?")
    rest()


def circle(ilka, bo):
    for c in (ilka, bo):
        call("PUT", f"/characters/{c}/settings", {"circle": {"enabled": True, "postsPerDay": 0}})
        call("POST", f"/circle/characters/{c}/init")
    image = upload("/attachments", "sea.png", picture(9, 9, (10, 120, 90)))["id"]
    post = call("POST", "/circle/posts", {"text": "The radio works again!", "images": [image]})["id"]
    comment = call("POST", f"/circle/posts/{post}/comments", {"text": "And it plays."})["id"]
    call("POST", f"/circle/posts/{post}/comments", {"text": "Only at night.", "replyTo": comment})
    call("PUT", f"/circle/posts/{post}/like")
    call("PUT", f"/circle/posts/{post}/favorite")
    call("POST", f"/circle/posts/{post}/forward", {"characterId": bo})
    call("PATCH", f"/circle/relationships/{ilka}/{bo}", {"strength": 40})
    call("PUT", "/circle/settings", {"quietFrom": "23:00", "quietUntil": "06:00"})
    gone = call("POST", "/circle/posts", {"text": "A mistake."})["id"]
    call("DELETE", f"/circle/posts/{gone}")
    time.sleep(3)


def answers(who, out):
    """Writes what the API answers about everything that must come over."""
    paths = ["/me", "/settings", "/personas", "/usage", "/circle/settings", "/circle/relationships"]
    lists = ["/characters", "/conversations", "/worldbooks", "/presets", "/regexscripts", "/personas", "/files", "/knowledge-bases", "/circle/posts", "/circle/actions"]
    for path in lists:
        for at in pages(path, who):
            paths.append(at)
            for item in call("GET", at, who=who)["items"]:
                one = f"{path}/{item['id']}"
                if path == "/characters":
                    paths += [one, one + "/settings", one + "/export", one + "/export?spec=nodest", one + "/export?format=charx", one + "/avatar", one + "/knowledge", one + "/memories/export", one + "/memories/suggestions", f"/circle/messagebox?characterId={item['id']}"]
                    for state in ("active", "superseded", "retired"):
                        paths += pages(f"{one}/memories?status={state}", who)
                        paths += [f"{one}/memories/{m['id']}/history" for m in call("GET", f"{one}/memories?status={state}&limit=100", who=who)["items"]]
                elif path == "/conversations":
                    paths += [one, one + "/export", one + "/export?format=json", one + "/branches", one + "/tree", one + "/summaries"] + [one + "/messages?limit=200"] + pages(one + "/saves", who)
                    for save in call("GET", one + "/saves", who=who)["items"]:
                        paths += [f"/saves/{save['id']}/export", f"/saves/{save['id']}"]
                    for message in call("GET", one + "/messages?limit=200", who=who)["items"]:
                        paths += [f"/messages/{message['id']}", f"/messages/{message['id']}/memories"]
                elif path in ("/worldbooks", "/presets", "/regexscripts"):
                    paths += [one, one + "/export"]
                elif path == "/files":
                    paths += [one, one + "/content", one + "/text", one + "/chunks"]
                elif path == "/knowledge-bases":
                    paths += [one, one + "/files", one + "/grants"]
                elif path in ("/circle/posts", "/personas"):
                    paths.append(one)
    for path in dict.fromkeys(paths):
        headers = {"Authorization": "Bearer " + tokens[who]}
        try:
            with urllib.request.urlopen(urllib.request.Request(base + "/api/v1" + path, headers=headers)) as res:
                status, body = res.status, res.read()
        except urllib.error.HTTPError as e:
            status, body = e.code, b""
        line = {"as": who, "path": path, "status": status}
        try:
            line["text"] = body.decode()
        except UnicodeDecodeError:
            line["data"] = base64.b64encode(body).decode()
        out.append(json.dumps(line, ensure_ascii=False))


def pack(path, content):
    with gzip.GzipFile(path, "wb", 9, mtime=0) as f:
        f.write(content)


server = serve()
stop(server)
if not env["NODEST_DATABASE_URL"]:
    pack(folder / "empty.db.gz", (data / "nodest.db").read_bytes())
server = serve()
alice = call("POST", "/users", {"username": "alice", "password": "correct horse battery"})["id"]
tokens["alice"] = json.loads(urllib.request.urlopen(urllib.request.Request(base + "/api/v1/auth/login", json.dumps({"username": "alice", "password": "correct horse battery"}).encode(),
                                                                           {"Content-Type": "application/json"})).read())["token"]
ilka, bo, sample = library()
chats(ilka, bo)
documents(ilka, alice)
circle(ilka, bo)
theirs = call("POST", "/characters", {"roleCard": {"name": "Ned", "first_mes": "Ay."}}, "alice")["id"]
chat = call("POST", "/conversations", {"characterId": theirs}, "alice")["id"]
call("POST", f"/conversations/{chat}/messages", {"text": "Only Alice reads this."}, "alice")
rest("alice")
tokens["owner"] = call("POST", "/tokens", {"name": "of the fixture"})["token"]
stop(server)
kept = tokens["owner"]
subprocess.run([nodest, "backup", str(folder / "backup.zip")], env=env, check=True)
server = serve()
tokens["owner"] = kept
out = []
answers("owner", out)
answers("alice", out)
stop(server)
pack(folder / "answers.jsonl.gz", ("\n".join([json.dumps({"tokens": tokens})] + out) + "\n").encode())
shutil.rmtree(temp)

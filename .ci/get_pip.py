"""Put pip into a Python environment that was made without it (Debian's python3 has no ensurepip).

    ENVIRONMENT/bin/python get_pip.py ENVIRONMENT

Standard library only. The wheel comes from PyPI, is checked against PyPI's own digest, and installs itself.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import urllib.parse
import urllib.request

INDEX = "https://pypi.org/pypi/pip/json"


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def main():
    environment = pathlib.Path(sys.argv[1])
    files = json.loads(get(INDEX))["urls"]
    wheel = next(file for file in files if file["filename"].endswith("-py3-none-any.whl"))
    data = get(urllib.parse.urljoin(INDEX, wheel["url"]))
    if hashlib.sha256(data).hexdigest() != wheel["digests"]["sha256"]:
        sys.exit(f"{wheel['filename']} does not have the digest that PyPI tells")
    path = environment / wheel["filename"]
    path.write_bytes(data)
    # A wheel is a zip file that Python can run from.
    install = [sys.executable, f"{path}/pip", "install", "--quiet", "--no-index", str(path)]
    status = subprocess.run(install, check=False).returncode
    path.unlink()
    return status


if __name__ == "__main__":
    sys.exit(main())

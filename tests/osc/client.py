"""The `openstack` client in this process: a start of its own costs it one to two seconds.

The client keeps its session in its classes, so that one process serves one server and one microversion.
"""
import contextlib
import io
import logging
import os
import sys
import warnings

# Before the client is imported: its name, nothing of this machine's settings, and tables as wide as they need.
sys.argv[0] = "openstack"
for name in [name for name in os.environ if name.startswith("OS_")]:
    del os.environ[name]
os.environ.update(OS_CLIENT_CONFIG_FILE=os.devnull, COLUMNS="400", CLIFF_MAX_TERM_WIDTH="0", LC_ALL="C.UTF-8")

from openstackclient import shell  # noqa: E402 - the environment comes first


class Client:
    """The administrator's commands to one server at one microversion."""

    def __init__(self, url, version):
        # admin_token knows the server's address: there is no Keystone to ask for it.
        self.options = ["--os-auth-type", "admin_token", "--os-endpoint", url, "--os-token", "admin",
                        "--os-placement-api-version", version]

    def run(self, words):
        """Run `openstack WORDS`: its exit status, what it told and what it complained of."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                status = shell.OpenStackShell().run([*self.options, *words])
            except SystemExit as end:  # argparse's end of a wrong command line
                status = end.code
            finally:
                # Each shell adds a handler that writes to its own stderr.
                for handler in list(logging.getLogger().handlers):
                    logging.getLogger().removeHandler(handler)
        return int(status or 0), out.getvalue(), err.getvalue()

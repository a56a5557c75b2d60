"""A WebDriver client, as far as the page's tests need one: the standard library, chromedriver and Chromium."""
import atexit
import base64
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Shift": "\ue008", "Alt": "\ue00a", "Escape": "\ue00c", "Tab": "\ue004", "Left": "\ue012", "Up": "\ue013",
        "Right": "\ue014", "Down": "\ue015", "Home": "\ue011", "End": "\ue010", "Space": " "}


class WebDriverError(Exception):
    pass


class Element:
    def __init__(self, browser, id):
        self.browser, self.id = browser, id

    def _get(self, what):
        return self.browser.ask("GET", f"/element/{self.id}/{what}")

    text = property(lambda self: self._get("text"))
    label = property(lambda self: self._get("computedlabel"))
    role = property(lambda self: self._get("computedrole"))
    is_shown = property(lambda self: self._get("displayed"))

    def attribute(self, name):
        return self._get(f"attribute/{name}")

    def property(self, name):
        return self._get(f"property/{name}")

    def click(self):
        self.browser.ask("POST", f"/element/{self.id}/click", {})

    def clear(self):
        self.browser.ask("POST", f"/element/{self.id}/clear", {})

    def type(self, text):
        self.browser.ask("POST", f"/element/{self.id}/value", {"text": text})


class Browser:
    def __init__(self, width=1280, height=800):
        self.downloads = tempfile.mkdtemp(prefix="page_test_")
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        start_new_session=True)
        atexit.register(self._kill)  # and all it has started, if nobody closes it
        for line in self.process.stdout:
            port = re.search(r"started successfully on port (\d+)", line)
            if port:
                break
        self.url = f"http://127.0.0.1:{port[1]}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}",
                     "--lang=en", "--force-device-scale-factor=1", "--hide-scrollbars"]
        options = {"args": arguments, "prefs": {"download.default_directory": self.downloads}}
        always = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
                  "unhandledPromptBehavior": "ignore", "timeouts": {"script": 60000, "pageLoad": 60000, "implicit": 0}}
        session = self._send("POST", self.url, {"capabilities": {"alwaysMatch": always}})
        self.url += "/" + session["sessionId"]

    def close(self):
        try:
            self.ask("DELETE", "")
        finally:
            self._kill()

    def _kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _send(self, method, url, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise WebDriverError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def ask(self, method, path, body=None):
        return self._send(method, self.url + path, body)

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The body of a function of `arguments`; what it returns."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def all(self, selector):
        found = self.ask("POST", "/elements", {"using": "css selector", "value": selector})
        return [Element(self, one[ELEMENT]) for one in found]

    def one(self, selector):
        found = self.all(selector)
        assert found, f"the page has no {selector}"
        return found[-1]

    def button(self, text, within="body"):
        """The last button with this text that is shown."""
        shown = [one for one in self.all(f"{within} button") if one.is_shown and one.text == text]
        assert shown, f"there is no button {text!r}"
        return shown[-1]

    def focused(self):
        return Element(self, self.ask("GET", "/element/active")[ELEMENT])

    def press(self, *names):
        """Keys one upon the other, as Shift and Enter, and up again. A name of KEYS, or a letter."""
        keys = [KEYS.get(name, name) for name in names]
        actions = [{"type": "keyDown", "value": key} for key in keys] + [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def type(self, text):
        actions = [{"type": kind, "value": letter} for letter in text for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def move_to(self, element):
        move = {"type": "pointerMove", "duration": 0, "origin": {ELEMENT: element.id}, "x": 0, "y": 0}
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def wait(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            assert time.monotonic() < end, f"after {seconds} s still not: {what}"
            time.sleep(0.03)

    def has_dialog(self):
        try:
            self.ask("GET", "/alert/text")
            return True
        except WebDriverError:
            return False

    def console(self):
        return [f"{line['level']}: {line['message']}" for line in self.ask("POST", "/se/log", {"type": "browser"})]

    def size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def shot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("GET", "/screenshot")))

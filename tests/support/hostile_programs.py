"""Programs that try to reach the host, to use it up, or to bring it down.

Each defines ``evil()``. FOLDER and PORT stand for a folder with the file ``secret.txt`` and a port that listens.
"""

from __future__ import annotations

PROGRAMS = {
    "read a file": "def evil():\n    return open('FOLDER/secret.txt').read()",
    "write a file": "def evil():\n    open('FOLDER/written.txt', 'w').write('x')",
    "read by pathlib": "import pathlib\ndef evil():\n    return pathlib.Path('FOLDER/secret.txt').read_text()",
    "list a folder": "import os\ndef evil():\n    return os.listdir('FOLDER')",
    "remove a file": "import os\ndef evil():\n    os.remove('FOLDER/secret.txt')",
    "environment": "import os\ndef evil():\n    return dict(os.environ)",
    "one variable": "import os\ndef evil():\n    return os.getenv('SANDBOX_CANARY')",
    "socket": "import socket\ndef evil():\n    socket.create_connection(('127.0.0.1', PORT))",
    "web": "import urllib.request\ndef evil():\n    urllib.request.urlopen('http://127.0.0.1:PORT/')",
    "subprocess": "import subprocess\ndef evil():\n    subprocess.run(['touch', 'FOLDER/written.txt'])",
    "shell": "import os\ndef evil():\n    os.system('touch FOLDER/written.txt')",
    "__import__": "def evil():\n    __import__('os').system('touch FOLDER/written.txt')",
    "importlib": "import importlib\ndef evil():\n    return importlib.import_module('os').getcwd()",
    "builtins": "def evil():\n    return __builtins__['open']('FOLDER/secret.txt').read()",
    "module builtins": "import builtins\ndef evil():\n    return builtins.open('FOLDER/secret.txt').read()",
    "import by exec": "def evil():\n    exec('import os; os.system(\"touch FOLDER/written.txt\")')",
    "open by eval": "def evil():\n    return eval('op' + 'en')('FOLDER/secret.txt').read()",
    "modules of json": "import json\ndef evil():\n    return json.codecs.builtins.open('FOLDER/secret.txt').read()",
    "classes of a tuple": "def evil():\n    return str(().__class__.__base__.__subclasses__())",
    "globals of a function": "def evil():\n    return str(evil.__globals__)",
    "frames of a generator": "def evil():\n    return str((i for i in ()).gi_frame.f_back.f_globals)",
    "trace of an exception": (
        "def evil():\n    try:\n"
        "        1 / 0\n    except Exception as e:\n        return str(e.__traceback__.tb_frame)"
    ),
    "walk by format": "def evil():\n    return '{0.__class__.__init__.__globals__}'.format(evil)",
    "walk by getattr": "def evil():\n    return str(getattr(evil, '__glo' + 'bals__'))",
    "wide letters": "def evil():\n    return ｅｖａｌ('1').__ｃｌａｓｓ__",
    "code of a function": "def evil():\n    evil.__code__ = (lambda: 1).__code__\n    return evil()",
    "class with a metaclass": (
        "class M(type):\n    def __call__(self): return 1\n"
        "class A(metaclass=M): pass\ndef evil():\n    return A()"
    ),
    "class with __del__": (
        "class A:\n    def __del__(self):\n        while True: pass\n"
        "def evil():\n    a = A()\n    del a\n    return 1"
    ),
    "rebound json": "import json\njson.dumps = lambda *a: 'x' * 10**7\ndef evil():\n    return 1",
    "shadowed names": "dumps = loads = len = type = str = lambda *a, **k: 0\ndef evil():\n    return 'x' * 10**6",
    "threads": "import threading\ndef evil():\n    threading.Thread(target=print).start()",
    "signals": "import os, signal\ndef evil():\n    os.kill(os.getppid(), signal.SIGTERM)",
    "ctypes": "import ctypes\ndef evil():\n    ctypes.string_at(0)",
    "SystemExit": "def evil():\n    raise SystemExit('bye')",
    "KeyboardInterrupt": "def evil():\n    raise KeyboardInterrupt",
    "loop": "def evil():\n    while True: pass",
    "loop that catches": (
        "def evil():\n    while True:\n"
        "        try:\n            while True: pass\n        except BaseException: pass"
    ),
    "loop at import": "while True: pass\ndef evil():\n    return 1",
    "endless count": "import itertools\ndef evil():\n    return sum(itertools.count())",
    "endless cycle": "import itertools\ndef evil():\n    return list(itertools.cycle([1]))",
    "product": "import itertools\ndef evil():\n    return sum(1 for _ in itertools.product(range(99), repeat=9))",
    "permutations": "import itertools\ndef evil():\n    return len(list(itertools.permutations(range(99))))",
    "sleep": "import time\ndef evil():\n    time.sleep(60)",
    "recursion": "def evil():\n    return evil()",
    "mutual recursion": "def a(): return b()\ndef b(): return a()\ndef evil():\n    return a()",
    "memory by list": "def evil():\n    x = [0]\n    while True: x += x",
    "memory by text": "def evil():\n    return len('a' * 10**10)",
    "memory that catches": (
        "def evil():\n    x = []\n    while True:\n"
        "        try:\n            x.append('a' * 10**6)\n        except MemoryError: pass"
    ),
    "memory by dict": "def evil():\n    return len({i: str(i) for i in range(10**9)})",
    "range as a list": "def evil():\n    return len(list(range(10**9)))",
    "huge number": "def evil():\n    return 9**9**9",
    "shifted number": "def evil():\n    return 1 << 10**10",
    "digits of a number": "def evil():\n    return str(10**5000)",
    "factorial": "import math\ndef evil():\n    return math.factorial(10**6)",
    "replace bomb": "def evil():\n    x = 'a'\n    while True: x = x.replace('a', 'aa' * 99)",
    "join bomb": "def evil():\n    return len(('a' * 10**6).join(['b'] * 10**6))",
    "padding": "def evil():\n    return f'{1:>9999999999}'",
    "percent padding": "def evil():\n    return '%9999999999d' % 1",
    "nested groups": "import re\ndef evil():\n    return bool(re.match('(a+)+$', 'a' * 50000 + 'b'))",
    "back reference": "import re\ndef evil():\n    return bool(re.match(r'(a*)*\\1\\1b', 'a' * 5000 + 'c'))",
    "look ahead": "import re\ndef evil():\n    return bool(re.match(r'(?=(a|aa)+$)(a|aa)+\\1c', 'a' * 5000 + 'b'))",
    "huge pattern": "import re\ndef evil():\n    return bool(re.match('((a{999}){999}){999}', 'a'))",
    "huge text out": "def evil():\n    return 'x' * 20_000_000",
    "shared list out": "def evil():\n    x = ['a' * 1000] * 1000\n    return [x] * 1000",
    "laughing dicts": "def evil():\n    d = {'a': 'b' * 9}\n    for _ in range(40): d = {'x': d, 'y': d}\n    return d",
    "deep list out": "def evil():\n    x = []\n    for _ in range(10**5): x = [x]\n    return x",
    "list in itself": "def evil():\n    x = []\n    x.append(x)\n    return x",
    "deep comparison": "def evil():\n    x, y = [], []\n    for _ in range(10**5): x, y = [x], [y]\n    return x == y",
    "function out": "def evil():\n    return evil",
    "bytes out": "def evil():\n    return b'x'",
    "huge message": "def evil():\n    raise ValueError('x' * 20_000_000)",
    "huge message at import": "raise ValueError('x' * 20_000_000)\ndef evil():\n    return 1",
    "huge cause": (
        "def evil():\n    try:\n"
        "        raise ValueError('x' * 20_000_000)\n"
        "    except ValueError as e:\n        raise KeyError('y' * 20_000_000) from e"
    ),
    "message for a terminal": "def evil():\n    raise ValueError('\\x1b[2J\\n\\x07')",
    "print": "def evil():\n    print('on the host', flush=True)",
    "print a lot": "def evil():\n    while True: print('on the host' * 1000)",
    "print in one": "def evil():\n    print('on the host' * 10**6)",
    "standard output": "import sys\ndef evil():\n    sys.stdout.write('on the host')",
    "evil keys": "def evil():\n    def key(x):\n        while True: pass\n    return sorted([2, 1], key=key)",
    "keys that change the list": (
        "def evil():\n    x = list(range(99))\n    def key(i):\n"
        "        x.clear()\n        return -i\n    x.sort(key=key)\n    return x"
    ),
    "growing while walked": "def evil():\n    x = [1]\n    for i in x: x.append(i)",
    "deep source": "def evil():\n    return " + "-" * 18000 + "1",
    "long chain": "def evil():\n    return evil" + ".a" * 9000,
    "brackets": "def evil():\n    return " + "(" * 5000,
    "half a character": "def evil():\n    return '\\ud800' * 3",
    "host modules": "import pydantic_monty\ndef evil():\n    return 1",
    "installing": "import micropip\ndef evil():\n    return 1",
}  # fmt: skip

SCORE = "\ndef score(output):\n    return evil() if output == 'evil' else len(output)\n"


def source_of(name: str, folder: str, port: int) -> str:
    """The program as a metric that is evil on one row only."""
    return PROGRAMS[name].replace("FOLDER", folder).replace("PORT", str(port)) + SCORE

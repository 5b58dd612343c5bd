"""Reading BTF: small type information with known truth, and the running kernel's own."""

import struct

import pytest
from btf import BTF_FILE, Btf

INT, PTR, ARRAY, STRUCT, UNION, ENUM, TYPEDEF, CONST, FUNC_PROTO = 1, 2, 3, 4, 5, 6, 8, 10, 13


class Writer:
    """Writes BTF records in the order of their ids, which count from 1."""

    def __init__(self, first: int = 0) -> None:
        self.strings, self.types, self._first = b"\0", b"", first  # `first`: where the strings of a module begin

    def name(self, text: str) -> int:
        if not text:
            return 0
        self.strings += text.encode() + b"\0"
        return self._first + len(self.strings) - len(text) - 1

    def add(self, name: str, kind: int, size: int, elements: list[tuple[int, ...]], flag: bool = False) -> None:
        self.types += struct.pack("<III", self.name(name), flag << 31 | kind << 24 | len(elements), size)
        self.types += b"".join(struct.pack(f"<{len(element)}I", *element) for element in elements)

    def finish(self) -> bytes:
        sizes = (0, len(self.types), len(self.types), len(self.strings))
        return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, *sizes) + self.types + self.strings


@pytest.fixture
def btf() -> Btf:
    """struct outer { int first; union { struct inner in; long other; }; const int *last; int flags:3; int list[5]; }"""
    w = Writer()
    w.types += struct.pack("<IIII", w.name("int"), INT << 24, 4, 32)  # 1
    w.add("inner", STRUCT, 8, [(w.name("a"), 1, 0), (w.name("b"), 1, 32)])  # 2
    w.add("", UNION, 8, [(w.name("in"), 2, 0), (w.name("other"), 1, 0)])  # 3
    w.add("", CONST, 1, [])  # 4
    w.add("", PTR, 4, [])  # 5
    w.types += struct.pack("<IIIIII", 0, ARRAY << 24, 0, 1, 1, 5)  # 6
    bits = 3 << 24 | 192
    members = [("first", 1, 0), ("", 3, 64), ("last", 5, 128), ("flags", 1, bits), ("list", 6, 224)]
    w.add("outer", STRUCT, 48, [(w.name(name), kind, offset) for name, kind, offset in members], flag=True)  # 7
    w.add("colour", ENUM, 4, [(w.name("RED"), 3), (w.name("BLUE"), 8)])  # 8
    w.add("", PTR, 7, [])  # 9
    w.add("", FUNC_PROTO, 0, [(0, 5), (0, 1), (0, 9)])  # 10
    w.add("", PTR, 10, [])  # 11
    w.add("btf_trace_thing", TYPEDEF, 11, [])  # 12
    return Btf(w.finish())


@pytest.mark.parametrize(
    ("path", "offset", "size"),
    [("first", 0, 4), ("in", 8, 8), ("in.b", 12, 4), ("other", 8, 4), ("last", 16, 8), ("list", 28, 20)],
)
def test_members_are_found_through_anonymous_unions(btf: Btf, path: str, offset: int, size: int) -> None:
    assert btf.find_member("outer", path) == (offset, size)


def test_what_is_missing_raises(btf: Btf) -> None:
    for struct_name, path in (("outer", "absent"), ("absent", "first"), ("outer", "in.absent")):
        with pytest.raises(KeyError):
            btf.find_member(struct_name, path)
    with pytest.raises(KeyError, match="bit-field"):
        btf.find_member("outer", "flags")
    assert btf.list_enumerators("absent") == {}
    assert btf.list_tracepoint_arguments("absent") is None


def test_enumerators_sizes_and_tracepoint_arguments(btf: Btf) -> None:
    assert btf.list_enumerators("colour") == {"RED": 3, "BLUE": 8}
    assert btf.get_struct_size("outer") == 48
    assert btf.list_tracepoint_arguments("thing") == ["", "outer"]  # the first argument is the probe's own


def test_types_of_a_module_go_on_where_those_of_the_kernel_end() -> None:
    kernel = Writer()
    kernel.types += struct.pack("<IIII", kernel.name("long"), INT << 24, 8, 64)  # 1
    base = Btf(kernel.finish())
    modules = {}
    for name in ("mine", "theirs"):
        writer = Writer(first=len(kernel.strings))
        writer.add("", PTR, 1, [])  # 2
        writer.add(name, STRUCT, 16, [(writer.name("first"), 1, 0), (writer.name("second"), 2, 64)])
        modules[name] = Btf(writer.finish(), base)
    assert modules["mine"].find_member("mine", "second") == modules["theirs"].find_member("theirs", "second") == (8, 8)
    assert modules["mine"].find_struct("theirs") == base.find_struct("mine") == 0


def test_other_data_are_refused() -> None:
    with pytest.raises(ValueError, match="magic"):
        Btf(bytes(64))
    w = Writer()
    w.add("odd", 27, 0, [])
    with pytest.raises(ValueError, match="kind 27 is unknown"):
        Btf(w.finish())


@pytest.mark.real
def test_running_kernel_has_what_the_probe_reads() -> None:
    if not BTF_FILE.exists():
        pytest.skip(f"this kernel has no {BTF_FILE}")
    kernel = Btf(BTF_FILE.read_bytes())
    assert kernel.find_member("request", "q") == (0, 8)
    assert kernel.find_member("request", "__data_len")[1] == 4
    assert kernel.list_enumerators("req_op")["REQ_OP_WRITE"] == 1
    arguments = kernel.list_tracepoint_arguments("block_rq_complete")
    assert arguments is not None
    assert arguments[0] == "request"

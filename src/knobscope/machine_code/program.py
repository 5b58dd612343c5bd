"""What the machine code of a program says without its source: functions, what they call, and what they refer to.

Read are position-independent ELF programs for x86-64, as distributions ship them, stripped or not: the limits of
functions stand in the table for unwinding, which every program has, and names are there as far as it exports them.
"""

import bisect
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from knobscope.errors import UserError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.relocation import RelocationSection

#: Relocations of x86-64 (System V ABI): the word is a symbol's address, a symbol's entry in the table of imports (for
#: data, for calls), or an address in this program.
_ABSOLUTE, _IMPORTED, _CALLED, _RELATIVE = 1, 6, 7, 8
_EXECUTABLE, _WRITABLE, _THREAD_LOCAL = 4, 1, 0x400
#: Sections whose words are constant once the program has been loaded.
_CONSTANT = (".data.rel.ro", ".got", ".dynamic", ".init_array", ".fini_array")
#: The table for unwinding: offsets from itself, four bytes each, of functions in order.
_UNWIND_TABLE = b"\x01\x1b\x03\x3b"
_LONGEST_TEXT = 200
#: Registers that a called function leaves as they are (System V ABI), and instructions that write to no operand.
_KEPT = frozenset({"rbx", "rbp", "r12", "r13", "r14", "r15"})
_READING = frozenset({"cmp", "test", "push", "bt", "ucomisd", "comisd", "ucomiss", "comiss", "nop"})
_STUB = 16  # bytes of an entry of the table through which imported functions are called
_CPP_NAME = re.compile(r"^_ZN?[rVK]*")
_BASED_OPERAND = re.compile(r"\[(r[a-z0-9]+)(?: ([+-]) (0x[0-9a-f]+|[0-9]+))?\]")
_RELATIVE_OPERAND = re.compile(r"\[rip ([+-]) (0x[0-9a-f]+|[0-9]+)\]")


class Loaded(NamedTuple):
    """An address that a function has loaded before a call, and the register that it went to."""

    register: str
    address: int


@dataclass
class Function:
    """A function: addresses that it refers to, and what it calls, an entry per call; an imported one by its name."""

    start: int
    references: set[int] = field(default_factory=set)
    calls: list[int | str] = field(default_factory=list)
    handed: list[tuple[Loaded, ...]] = field(default_factory=list)  # before each call, since the one before


@dataclass(frozen=True)
class _Section:
    start: int
    end: int
    data: bytes  # empty where the file has none
    kind: str  # "code", "variables", "constants" or "addresses"


class Program:
    """A program in a file; UserError where it is none that can be read."""

    def __init__(self, path: Path) -> None:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile

        try:
            with path.open("rb") as file:
                self._read(ELFFile(file))
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from error
        except (ELFError, struct.error) as error:
            raise UserError(f"{path}: no program in ELF form: {error}") from error
        except _UnreadableError as error:
            raise UserError(f"{path}: {error}") from error

    def _read(self, elf: "ELFFile") -> None:
        from elftools.elf.relocation import RelocationSection, RelrRelocationSection
        from elftools.elf.sections import SymbolTableSection

        if elf["e_machine"] != "EM_X86_64" or elf["e_type"] != "ET_DYN":
            raise _UnreadableError("expected a position-independent program for x86-64")
        self._sections = sorted(
            (
                _Section(
                    section["sh_addr"],
                    section["sh_addr"] + section["sh_size"],
                    b"" if section["sh_type"] == "SHT_NOBITS" else section.data(),
                    _kind(section.name, section["sh_flags"]),
                )
                for section in elf.iter_sections()
                if section["sh_addr"] and not section["sh_flags"] & _THREAD_LOCAL
            ),
            key=lambda section: section.start,
        )
        #: Address of a word in data -> the address that it holds; and imported functions by the word that holds theirs.
        self.words: dict[int, int] = {}
        self._imports: dict[int, str] = {}
        for section in elf.iter_sections():
            if isinstance(section, RelrRelocationSection):  # packed: the words in the file are the addresses
                self.words.update(
                    (entry["r_offset"], self._word(entry["r_offset"])) for entry in section.iter_relocations()
                )
            elif isinstance(section, RelocationSection) and section["sh_addr"]:
                self._read_relocations(section, elf.get_section(section["sh_link"]))
        self._names: dict[int, str] = {}
        for section in elf.iter_sections():
            if isinstance(section, SymbolTableSection):
                for symbol in section.iter_symbols():
                    if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"]:
                        self._names.setdefault(symbol["st_value"], symbol.name)
        self._starts = _read_starts(elf)
        self._stubs = [
            (section["sh_addr"], section.data())
            for section in elf.iter_sections()
            if section.name in (".plt", ".plt.sec", ".plt.got")
        ]

    def _read_relocations(self, section: "RelocationSection", symbols: Any) -> None:
        for relocation in section.iter_relocations():
            address = relocation["r_offset"]
            if relocation["r_info_type"] == _RELATIVE:
                self.words[address] = relocation["r_addend"]
            elif relocation["r_info_type"] in (_ABSOLUTE, _IMPORTED, _CALLED):
                symbol = symbols.get_symbol(relocation["r_info_sym"])
                if symbol["st_value"]:
                    self.words[address] = symbol["st_value"] + relocation["r_addend"]
                else:
                    self._imports[address] = symbol.name

    def _word(self, address: int) -> int:
        section = self._find(address)
        assert section is not None  # noqa: S101 - a relocation is of a word of the program
        return int(struct.unpack_from("<Q", section.data, address - section.start)[0])

    def _find(self, address: int) -> _Section | None:
        number = bisect.bisect_right(self._sections, address, key=lambda section: section.start) - 1
        return self._sections[number] if number >= 0 and address < self._sections[number].end else None

    def kind(self, address: int) -> str | None:
        """Return what is at an address: `code`, `variables`, `constants`, `addresses` of other things, or None."""
        section = self._find(address)
        return None if section is None else section.kind

    def text(self, address: int) -> str | None:
        """Return the text of constants at an address, if there is one."""
        section = self._find(address)
        if section is None or section.kind != "constants":
            return None
        start = address - section.start
        end = section.data.find(b"\0", start, start + _LONGEST_TEXT)
        try:
            return section.data[start:end].decode() if end > start else None
        except UnicodeDecodeError:
            return None

    def name(self, start: int) -> str:
        """Return the name of a function, as far as the program has it; or else its address."""
        return shorten_name(self._names[start]) if start in self._names else f"{start:#x}"

    @property
    def count(self) -> int:
        """How many functions there are."""
        return len(self._starts)

    def functions(self) -> Iterator[Function]:
        """Decode all functions, in order of their addresses."""
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs

        decoder = Cs(CS_ARCH_X86, CS_MODE_64)
        decoder.skipdata = True
        for section in self._sections:
            if section.kind != "code":
                continue
            first, last = (bisect.bisect_left(self._starts, edge) for edge in (section.start, section.end))
            starts = self._starts[first:last]
            for start, end in zip(starts, [*starts[1:], section.end], strict=False):  # a section may have none
                yield self._decode(
                    decoder.disasm_lite(section.data[start - section.start : end - section.start], start)
                )

    def _decode(self, instructions: Iterator[tuple[int, int, str, str]]) -> Function:
        function: Function | None = None
        loaded: list[Loaded] = []
        bases: dict[str, int] = {}  # registers that hold the address of data: members are reached from it
        for address, size, mnemonic, operands in instructions:
            function = function or Function(address)
            if mnemonic.startswith(("call", "j", "bnd", "notrack")):
                if (callee := self._callee(address + size, operands)) is None or callee == function.start:
                    continue
                if "call" not in mnemonic and not isinstance(callee, str) and not self._is_start(callee):
                    continue  # a jump inside
                function.calls.append(callee)
                function.handed.append(tuple(loaded))
                loaded = []
                bases = {register: base for register, base in bases.items() if register in _KEPT}
            elif (target := _relative(address + size, operands)) is not None:
                target = self.words.get(target, target) if self._is_indirect(target) else target
                function.references.add(target)
                if mnemonic == "lea":
                    register = operands.split(",")[0]
                    loaded.append(Loaded(register, target))
                    bases[register] = target
            elif bases:
                if (member := _BASED_OPERAND.search(operands)) is not None and member[1] in bases:
                    distance = int(member[3] or "0", 0)
                    function.references.add(bases[member[1]] + (-distance if member[2] == "-" else distance))
                if mnemonic not in _READING:
                    bases.pop(_whole_register(operands.split(",")[0]), None)
        assert function is not None  # noqa: S101 - no function is empty
        return function

    def _callee(self, behind: int, operands: str) -> int | str | None:
        """Return what a branch goes to: a function, an imported one, or None where only a register knows."""
        if (word := _relative(behind, operands)) is not None:
            return self._imports.get(word) or self.words.get(word)
        if not operands.startswith("0x"):
            return None
        target = int(operands, 16)
        return self._stub_names.get(target) or target

    def _is_start(self, address: int) -> bool:
        number = bisect.bisect_left(self._starts, address)
        return number < len(self._starts) and self._starts[number] == address

    def _is_indirect(self, address: int) -> bool:
        """Whether an address is that of a word of the table of addresses, by which data is reached."""
        return address in self.words and self.kind(address) == "addresses"

    @cached_property
    def _stub_names(self) -> dict[int, str]:
        """Imported functions by the address of the entry through which they are called."""
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs

        names: dict[int, str] = {}
        for start, data in self._stubs:
            for address, size, _, operands in Cs(CS_ARCH_X86, CS_MODE_64).disasm_lite(data, start):
                word = _relative(address + size, operands)
                if word in self._imports:
                    names[start + (address - start) // _STUB * _STUB] = self._imports[word]
        return names


class _UnreadableError(Exception):
    """The program is of a kind that is not read."""


def shorten_name(name: str) -> str:
    """Return a C++ name as people write it, without arguments: `Log::flush` for `_ZN3Log5flushEPb` (Itanium ABI)."""
    parts: list[str] = []
    remainder = _CPP_NAME.sub("", name)
    while remainder != name and (digits := re.match(r"[0-9]+", remainder)) is not None:
        end = digits.end() + int(digits[0])
        parts.append(remainder[digits.end() : end])
        remainder = remainder[end:]
        if not name.startswith("_ZN"):
            break
    return "::".join(parts) or name


def _whole_register(name: str) -> str:
    """Return the register of 64 bits that one of 32 bits is the lower half of: writing this clears the other half."""
    return f"r{name[1:]}" if name.startswith("e") else name.removesuffix("d") if name.startswith("r") else name


def _kind(name: str, flags: int) -> str:
    if flags & _EXECUTABLE:
        return "code"
    if name.startswith(".got"):
        return "addresses"
    return "variables" if flags & _WRITABLE and not name.startswith(_CONSTANT) else "constants"


def _relative(behind: int, operands: str) -> int | None:
    """Return the address that an operand relative to the next instruction stands for."""
    if "[rip" not in operands or (match := _RELATIVE_OPERAND.search(operands)) is None:
        return None
    distance = int(match[2], 0)
    return behind + (distance if match[1] == "+" else -distance)


def _read_starts(elf: "ELFFile") -> list[int]:
    section = elf.get_section_by_name(".eh_frame_hdr")
    if section is None or (data := section.data())[:4] != _UNWIND_TABLE:
        raise _UnreadableError("it has no table for unwinding that could be read")
    (count,) = struct.unpack_from("<I", data, 8)
    return sorted({section["sh_addr"] + offset for offset, _ in struct.iter_unpack("<ii", data[12 : 12 + 8 * count])})

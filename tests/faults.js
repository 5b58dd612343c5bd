// Finds what a reader would call broken in a page: text that is cut off, hidden by other text, too small or too pale,
// and a page or a table that has to be scrolled sideways. Answers the page around it with a list of sentences.
"use strict";

const TOLERANCE = 1.5; // CSS pixels: positions are rounded
const NAV = document.querySelector("nav");
const IS_PAPER = NAV !== null && getComputedStyle(NAV).display === "none";
const LEAST_SIZE = IS_PAPER ? 7 : 8; // CSS pixels of letters in a picture that is shown smaller than it was drawn
const MOST = 20;

function words(element) {
  const text = element.textContent.trim().replace(/\s+/g, " ");
  return `${element.tagName.toLowerCase()} "${text.slice(0, 60)}"`;
}

function isShown(element) {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0 && element.checkVisibility({ visibilityProperty: true });
}

/** Elements that hold text of their own. */
function listTexts(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = new Set();
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (walker.currentNode.textContent.trim() && parent && !parent.closest("script, style, title, desc")) found.add(parent);
  }
  return [...found].filter(isShown);
}

function scrolls(element) {
  return ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
}

function findSideways() {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth + TOLERANCE) return [];
  const wide = [...document.body.querySelectorAll("*")].filter((element) => {
    for (let at = element; at !== document.body; at = at.parentElement) if (at !== element && scrolls(at)) return false;
    return isShown(element) && element.getBoundingClientRect().right > page.clientWidth + TOLERANCE;
  });
  return wide.map((element) => `wider than the window: ${words(element)}`);
}

/** Tables of which a part is outside their box: on paper nobody can scroll, on a telephone nobody sees that one could. */
function findWideTables() {
  return [...document.querySelectorAll("table")].filter((table) => {
    const box = table.parentElement;
    return isShown(table) && box.scrollWidth > box.clientWidth + TOLERANCE;
  }).map((table) => `wider than its box: ${words(table)}`);
}

/** Names of columns, in cells that hold nothing: on a telephone a row is a list of them. */
function findUnanswered() {
  return [...document.querySelectorAll("td, th")].filter((cell) => {
    const isNamed = !["none", "normal"].includes(getComputedStyle(cell, "::before").content);
    return isNamed && isShown(cell) && !cell.textContent.trim();
  }).map((cell) => `a name without a value: ${cell.dataset.head}`);
}

/** Words that stand outside of the card that they belong to. */
function findOutside(texts) {
  return texts.filter((element) => {
    const card = element.closest("article");
    for (let at = element; at && at !== card; at = at.parentElement) if (scrolls(at)) return false;
    return card && element.getBoundingClientRect().right > card.getBoundingClientRect().right + TOLERANCE;
  }).map((element) => `outside of its card: ${words(element)}`);
}

function findSmall(texts) {
  return texts.filter((element) => {
    const picture = element.ownerSVGElement;
    return picture && picture.getScreenCTM().a * parseFloat(getComputedStyle(element).fontSize) < LEAST_SIZE;
  }).map((element) => `too small: ${words(element)}`);
}

function findCut(texts) {
  return texts.filter((element) => {
    const box = element.getBoundingClientRect();
    const picture = element.ownerSVGElement;
    if (picture) {
      const frame = picture.getBoundingClientRect();
      return box.left < frame.left - TOLERANCE || box.right > frame.right + TOLERANCE
        || box.top < frame.top - TOLERANCE || box.bottom > frame.bottom + TOLERANCE;
    }
    const style = getComputedStyle(element);
    return style.overflowX === "hidden" && element.scrollWidth > element.clientWidth + TOLERANCE;
  }).map((element) => `cut off: ${words(element)}`);
}

function findOverlaps(texts) {
  const found = [];
  for (const picture of document.querySelectorAll("svg")) {
    const inside = texts.filter((element) => element.ownerSVGElement === picture && element.tagName === "text");
    const boxes = inside.map((element) => element.getBoundingClientRect());
    for (let i = 0; i < boxes.length; i++) {
      for (let j = i + 1; j < boxes.length; j++) {
        const across = Math.min(boxes[i].right, boxes[j].right) - Math.max(boxes[i].left, boxes[j].left);
        const down = Math.min(boxes[i].bottom, boxes[j].bottom) - Math.max(boxes[i].top, boxes[j].top);
        // Boxes of text have room above and below the letters.
        const room = 0.3 * Math.min(boxes[i].height, boxes[j].height);
        if (across > TOLERANCE && down > room) found.push(`one over the other: ${words(inside[i])}, ${words(inside[j])}`);
      }
    }
  }
  return found;
}

function readColour(text) {
  const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
  return { red, green, blue, alpha };
}

function mix(over, under) {
  const part = (name) => over[name] * over.alpha + under[name] * (1 - over.alpha);
  return { red: part("red"), green: part("green"), blue: part("blue"), alpha: 1 };
}

/** Relative luminance, WCAG 2.2. */
function luminance(colour) {
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

function findGround(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const colour = readColour(getComputedStyle(at).backgroundColor);
    layers.push(colour);
    if (colour.alpha === 1) break;
  }
  return layers.reduceRight((under, over) => mix(over, under), { red: 255, green: 255, blue: 255, alpha: 1 });
}

/** What lies directly below a text of a picture that has no halo around its letters: a filled rectangle, as a colour. */
function findTile(element) {
  if (!element.ownerSVGElement || getComputedStyle(element).stroke !== "none") return null;
  const box = element.getBoundingClientRect(), x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
  for (let before = element.previousElementSibling; before; before = before.previousElementSibling) {
    const style = getComputedStyle(before), tile = before.getBoundingClientRect();
    const isBelow = tile.left <= x && x <= tile.right && tile.top <= y && y <= tile.bottom;
    if (before.tagName === "rect" && style.fill !== "none" && isBelow) {
      return { ...readColour(style.fill), alpha: readColour(style.fill).alpha * style.fillOpacity };
    }
  }
  return null;
}

/** Contrast below what WCAG 2.2 asks for at level AA (1.4.3). */
function findPale(texts) {
  return texts.map((element) => {
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const paint = element.ownerSVGElement ? style.fill : style.color;
    const tile = findTile(element), paper = findGround(element), ground = tile ? mix(tile, paper) : paper;
    const [light, dark] = [luminance(mix(readColour(paint), ground)), luminance(ground)].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    return contrast < (isLarge ? 3 : 4.5) ? `too pale (${contrast.toFixed(1)}): ${words(element)}` : "";
  }).filter(Boolean);
}

addEventListener("load", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const texts = listTexts(document.body);
  const found = [
    ...findSideways(), ...findWideTables(), ...findOutside(texts), ...findCut(texts), ...findOverlaps(texts), ...findSmall(texts),
    ...findPale(texts), ...findUnanswered(),
  ];
  const seen = { width: innerWidth, texts: texts.length, dark: matchMedia("(prefers-color-scheme: dark)").matches };
  parent.postMessage({ ...seen, faults: [...new Set(found)].slice(0, MOST) }, "*");
});

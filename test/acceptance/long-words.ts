/** Makes the words of a page as long as those of other languages, and finds what then has no room. */
import assert from 'node:assert/strict';
import type { Evaluates } from './console-kit.ts';

/** Runs in the page: German is longer by 40 %, and its words are, not only its sentences. */
const LENGTHEN = `(() => {
  const longer = (text) => text.replace(/\\p{L}{4,}/gu, (word) =>
    word + 'ungenschaft'.slice(0, Math.min(11, Math.ceil(word.length * 0.4))));
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    const { currentNode: node } = walker;
    if (node.isLengthened || node.parentElement.closest('pre, code, script, style, svg, .mono')) continue;
    node.isLengthened = true;
    node.nodeValue = longer(node.nodeValue);
    count++;
  }
  for (const name of ['data-name', 'placeholder']) {
    for (const element of document.querySelectorAll('[' + name + ']')) {
      const text = element.getAttribute(name);
      if (element['long-' + name] === text) continue;
      element['long-' + name] = longer(text);
      element.setAttribute(name, longer(text));
    }
  }
  return count;
})()`;

/** Runs in the page: what reaches beyond the edge, or is cut without a sign of it. */
const WITHOUT_ROOM = `(() => {
  const found = new Set();
  const say = (what, element) => found.add(what + ': ' + element.tagName + ' ' + element.textContent.trim().slice(0, 60));
  const scrolls = (element) => element !== null && element !== document.documentElement &&
    (/auto|scroll/.test(getComputedStyle(element).overflowX) && element !== document.body || scrolls(element.parentElement));
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.add('the page is ' + scrollWidth + ' wide, of ' + clientWidth);
  const open = document.querySelector('[role=dialog]') ?? document.body;
  if (open.scrollWidth > open.clientWidth + 1) say('scrolls sideways', open);
  for (const element of open.querySelectorAll('button, a, label, legend, h1, h2, h3, th, td, p, [role=tab]')) {
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const { left, right, width } = element.getBoundingClientRect();
    if (width <= 1 || right <= 0) continue;
    if (!scrolls(element.parentElement) && (right > clientWidth + 1 || left < -1)) say('beyond the edge', element);
    for (const inner of [element, ...element.querySelectorAll('*')]) {
      const { overflowX, textOverflow } = getComputedStyle(inner);
      const isCut = /hidden|clip/.test(overflowX) && inner.clientWidth > 1 && inner.scrollWidth > inner.clientWidth + 1;
      if (isCut && textOverflow !== 'ellipsis') say('cut', inner);
    }
  }
  return JSON.stringify([...found]);
})()`;

/** Lengthens the words of the page and asserts that all of them have room. */
export async function assertRoomForLongWords(page: Evaluates, what: string): Promise<void> {
  const lengthened = Number(await page.evaluate(LENGTHEN));
  const faults = JSON.parse(String(await page.evaluate(WITHOUT_ROOM))) as string[];
  assert.deepEqual(faults, [], `${what}, with ${lengthened} texts longer`);
}

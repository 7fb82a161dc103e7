/** User input and visible output of a page, in one way for every browser: a walk is written once. */
import type { Page } from 'playwright-core';
import { eventually } from '../harness/waiting.ts';

/** An expression for the visible element with this name, among those that match the selector. */
export const named = (selector: string, name: string): string =>
  `[...document.querySelectorAll(${JSON.stringify(selector)})].find((element) => element.checkVisibility() &&
    (element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent)
      .replace('*', '').trim() === ${JSON.stringify(name)})`;

export abstract class Hands {
  abstract goto(url: string): Promise<void>;
  /**
   * The result of an expression in the page, once its promise resolves: a string, a number, true or false.
   */
  abstract evaluate(expression: string): Promise<unknown>;
  /** Types a text into the focused element. */
  abstract type(text: string): Promise<void>;
  /** Presses a key, with or without Control or Shift: `Enter`, `Control+k`. */
  abstract press(chord: string): Promise<void>;
  /** Runs a script in every page opened from now on, before the page's own scripts. */
  abstract prepare(script: string): Promise<void>;
  /** Drops files and folders of the disk onto the middle of the page. */
  abstract drop(...paths: readonly string[]): Promise<void>;

  /** Waits until the expression is true in the page; the error contains `what`. */
  async holds(what: string, expression: string): Promise<void> {
    await eventually(what, () => this.evaluate(expression) as Promise<boolean>);
  }

  /** Resolves when the page shows this text. */
  async says(words: string): Promise<void> {
    await this.holds(`"${words}" is shown`, `document.body.innerText.includes(${JSON.stringify(words)})`);
  }

  /** Focuses the element with this name, as with Tab, and presses the key. */
  async pressOn(selector: string, name: string, key = 'Enter'): Promise<void> {
    await this.focus(selector, name);
    await this.press(key);
  }

  /** Types into the field with this label. */
  async fill(label: string, text: string): Promise<void> {
    await this.focus('input, textarea', label);
    await this.type(text);
  }

  /** Replaces the text in the field with this label. */
  async retype(label: string, text: string): Promise<void> {
    await this.focus('input, textarea', label);
    await this.press('Control+a');
    await this.type(text);
  }

  async focus(selector: string, name: string): Promise<void> {
    const element = named(selector, name);
    await this.holds(`${name} is there`, `${element} !== undefined`);
    await this.evaluate(`${element}.focus()`);
  }
}

/** For Chromium, with its own input events. */
export class ChromiumHands extends Hands {
  readonly #page: Page;

  constructor(page: Page) {
    super();
    this.#page = page;
  }

  async goto(url: string): Promise<void> {
    await this.#page.goto(url);
  }

  evaluate(expression: string): Promise<unknown> {
    return this.#page.evaluate(expression);
  }

  type(text: string): Promise<void> {
    return this.#page.keyboard.type(text);
  }

  press(chord: string): Promise<void> {
    return this.#page.keyboard.press(chord);
  }

  async prepare(script: string): Promise<void> {
    await this.#page.addInitScript(script);
  }

  async drop(...paths: readonly string[]): Promise<void> {
    const { width, height } = this.#page.viewportSize() ?? { width: 0, height: 0 };
    const session = await this.#page.context().newCDPSession(this.#page);
    const data = { items: [], files: [...paths], dragOperationsMask: 1 };
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
      await session.send('Input.dispatchDragEvent', { type, x: width / 2, y: height / 2, data });
    }
    await session.detach();
  }
}

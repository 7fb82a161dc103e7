/** A real Firefox, controlled by WebDriver BiDi: differences between browsers are tested in both. */
import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { noteStarted } from '../harness/leftovers.ts';
import { eventually } from '../harness/waiting.ts';
import { Hands } from './hands.ts';

const PREFERENCES = {
  // The page's process opens dropped files itself: no window system passes them on.
  'security.sandbox.content.level': 0,
  'dom.filesystem.pathcheck.disabled': true,
  'app.update.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'browser.shell.checkDefaultBrowser': false,
};

/** Keys by their code points in WebDriver. */
const HELD: Readonly<Record<string, string>> = { Control: '\uE009', Shift: '\uE008' };
const KEYS: Readonly<Record<string, string>> = {
  Tab: '\uE004',
  Enter: '\uE007',
  Escape: '\uE00C',
  ArrowUp: '\uE013',
  ArrowDown: '\uE015',
  ArrowRight: '\uE014',
  Delete: '\uE017',
  F2: '\uE032',
};

/** Refusals are said there too, as in Chromium: a console that opens before its machine runs. */
const REFUSAL = /^Firefox can’t establish a connection to the server at ws:/;

const down = (value: string) => ({ type: 'keyDown', value });
const up = (value: string) => ({ type: 'keyUp', value });
const stroke = (value: string) => [down(value), up(value)];

interface Reply {
  readonly id?: number;
  readonly type: 'success' | 'error' | 'event';
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly result?: any;
  readonly message?: string;
  readonly params?: { readonly level: string; readonly text: string };
}

export class Firefox extends Hands {
  /** Errors that pages logged or threw. */
  readonly complaints: string[] = [];
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #context = '';

  private constructor(socket: WebSocket) {
    super();
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#take(JSON.parse(String(data))));
  }

  static async open(): Promise<Firefox> {
    const address = await startBrowser();
    const socket = new WebSocket(`${address}/session`);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', () => reject(new Error(`Firefox does not answer at ${address}`)));
    });
    const firefox = new Firefox(socket);
    await firefox.#send('session.new', { capabilities: {} });
    await firefox.#send('session.subscribe', { events: ['log.entryAdded'] });
    const { contexts } = await firefox.#send('browsingContext.getTree');
    firefox.#context = contexts[0].context;
    return firefox;
  }

  async close(): Promise<void> {
    await this.#send('browser.close');
    this.#socket.close();
  }

  /** Continues in a new tab without earlier state: cookies, storage, errors. */
  async startAfresh(): Promise<void> {
    const former = this.#context;
    const { userContext } = await this.#send('browser.createUserContext');
    const { context } = await this.#send('browsingContext.create', { type: 'tab', userContext });
    this.#context = context;
    await this.#send('browsingContext.close', { context: former });
    this.complaints.length = 0;
  }

  async goto(url: string): Promise<void> {
    await this.#send('browsingContext.navigate', { context: this.#context, url, wait: 'complete' });
  }

  evaluate(expression: string): Promise<unknown> {
    return this.#evaluateIn(this.#context, expression);
  }

  /** Stores a screenshot as PNG. */
  async picture(path: string): Promise<void> {
    const { data } = await this.#send('browsingContext.captureScreenshot', { context: this.#context });
    writeFileSync(path, Buffer.from(data, 'base64'));
  }

  async resize(viewport: { readonly width: number; readonly height: number }): Promise<void> {
    await this.#send('browsingContext.setViewport', { context: this.#context, viewport });
  }

  async type(text: string): Promise<void> {
    await this.#keys([...text].flatMap(stroke));
  }

  async press(chord: string): Promise<void> {
    const [name = '', modifier = ''] = chord.split('+').reverse();
    const held = HELD[modifier];
    const key = stroke(KEYS[name] ?? name);
    await this.#keys(held === undefined ? key : [down(held), ...key, up(held)]);
  }

  async prepare(script: string): Promise<void> {
    const functionDeclaration = `() => { ${script} }`;
    await this.#send('script.addPreloadScript', { functionDeclaration, contexts: [this.#context] });
  }

  async #keys(actions: readonly object[]): Promise<void> {
    const keyboard = { type: 'key', id: 'keyboard', actions };
    await this.#send('input.performActions', { context: this.#context, actions: [keyboard] });
  }

  /**
   * One at a time: a drag has one item here. The drag session is that of Firefox's own tests, started inside
   * the page's process: a headless Firefox gets none from a window system. Its events are trusted, and the
   * entries equal those of a manual drop.
   */
  async drop(...paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      await this.#dropOne(path);
      await this.says(' uploaded');
    }
  }

  async #dropOne(path: string): Promise<void> {
    const { contexts } = await this.#send('browsingContext.getTree', { 'moz:scope': 'chrome' });
    const script = `data:application/javascript,${encodeURIComponent(dropScript(path))}`;
    const said = await this.#evaluateIn(
      contexts[0].context,
      `new Promise((resolve) => {
        const { messageManager } = gBrowser.selectedBrowser;
        messageManager.addMessageListener('dropped', ({ data }) => resolve(data));
        messageManager.loadFrameScript(${JSON.stringify(script)}, false);
      })`,
    );
    if (said !== '') throw new Error(`Firefox could not drop ${path}: ${said}`);
  }

  /** Selects a file of the disk for the only element with that selector, like the browser's own dialog. */
  async chooseFile(selector: string, path: string): Promise<void> {
    const context = this.#context;
    const locator = { type: 'css', value: selector };
    const { nodes } = await this.#send('browsingContext.locateNodes', { context, locator });
    if (nodes.length !== 1) throw new Error(`${nodes.length} elements are ${selector}`);
    await this.#send('input.setFiles', { context, element: { sharedId: nodes[0].sharedId }, files: [path] });
  }

  async #evaluateIn(context: string, expression: string): Promise<unknown> {
    const target = { context };
    const answer = await this.#send('script.evaluate', { expression, target, awaitPromise: true });
    if (answer.type === 'exception') throw new Error(answer.exceptionDetails.text);
    return answer.result.value;
  }

  #send(method: string, params: object = {}): Promise<Reply['result']> {
    const id = this.#waiting.size + 1;
    this.#socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ type, result, message }) =>
        type === 'success' ? resolve(result) : reject(new Error(`${method}: ${message}`)),
      );
    });
  }

  #take(reply: Reply): void {
    if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply);
    else if (reply.params?.level === 'error' && !REFUSAL.test(reply.params.text))
      this.complaints.push(reply.params.text);
  }
}

/** Returns the address of BiDi. The rest of the browser ends with this process. */
async function startBrowser(): Promise<string> {
  const profile = mkdtempSync(join(tmpdir(), 'cloudlet-firefox-'));
  const lines = Object.entries(PREFERENCES).map(([name, value]) => `user_pref("${name}", ${value});\n`);
  writeFileSync(join(profile, 'user.js'), lines.join(''));
  const where = ['--profile', profile, '--remote-debugging-port=0', '--remote-allow-system-access'];
  const child = spawn('firefox-esr', ['--headless', '--no-remote', ...where], {
    env: { PATH: process.env.PATH, HOME: profile },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  if (child.pid !== undefined) noteStarted(child.pid, profile, true);
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.unref();
  return eventually('Firefox listens', () => {
    if (child.exitCode !== null) throw new Error(`Firefox did not start:\n${output}`);
    return /WebDriver BiDi listening on (ws:\S+)/.exec(output)?.[1];
  });
}

/** Runs in the page's process with browser privileges. */
const dropScript = (path: string): string => `
  try {
    const page = content;
    const file = Cc['@mozilla.org/file/local;1'].createInstance(Ci.nsIFile);
    file.initWithPath(${JSON.stringify(path)});
    const dragged = new page.DataTransfer();
    dragged.mozSetDataAt('application/x-moz-file', file, 0);
    const drags = Cc['@mozilla.org/widget/dragservice;1'].getService(Ci.nsIDragService);
    drags.startDragSessionForTests(page, Ci.nsIDragService.DRAGDROP_ACTION_COPY);
    const session = drags.getCurrentSession(page);
    session.dataTransfer = dragged;
    session.dragAction = Ci.nsIDragService.DRAGDROP_ACTION_COPY;
    const [x, y] = [page.innerWidth / 2, page.innerHeight / 2];
    for (const type of ['dragenter', 'dragover', 'drop']) {
      const event = page.document.createEvent('DragEvent');
      event.initDragEvent(type, true, true, page, 0, x, y, x, y, false, false, false, false, 0, null, null);
      page.windowUtils.dispatchDOMEventViaPresShellForTesting(page.document.elementFromPoint(x, y), event);
    }
    session.endDragSession(true, 0);
    sendAsyncMessage('dropped', '');
  } catch (error) {
    sendAsyncMessage('dropped', String(error));
  }`;

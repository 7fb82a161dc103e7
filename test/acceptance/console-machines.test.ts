/** A machine in the console: created on one page, used over its serial console, viewed, deleted. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { after, before } from 'node:test';
import { WebSocket } from 'ws';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import {
  assertAccessible,
  assertAsks,
  openJourney,
  stepsOf,
  type Traveller,
  typeName,
} from './console-journey.ts';
import { PASSWORD } from './console-kit.ts';
import { cannotRunGuests, removeAll } from './vms-kit.ts';

const skip = noBrowser || cannotRunGuests();
const NAME = 'web <b>1</b>';

const step = stepsOf(skip);
let ada: Traveller;
before(async () => {
  if (!skip) ada = await openJourney('/machines');
});
after(async () => {
  if (skip || ada === undefined) return;
  await removeAll(ada.user);
  await ada.fixture.close();
});

/** The text of the terminal, without line ends. */
const screen = async () => (await ada.page.locator('.xterm-rows').innerText()).replace(/\s+$/gm, '');

/** Waits until the terminal shows this. */
const shows = (words: RegExp) =>
  eventually(`the console shows ${words}`, async () => words.test(await screen()));

/** Types it in a separate console, like a user in another tab. */
async function typeElsewhere(typed: string): Promise<void> {
  const [{ vm_id }] = await ada.user.expect(200, '/api/vms');
  const url = `${ada.fixture.cloud.api.replace('http', 'ws')}/api/vms/${vm_id}/console`;
  const socket = new WebSocket(url, { headers: { 'x-api-key': ada.user.key ?? '' } });
  await once(socket, 'open');
  socket.send(Buffer.from(typed));
  socket.close();
  await once(socket, 'close');
}

step('a machine is made, typed into, and its console is there after a reload', async () => {
  const { page } = ada;
  await page.getByText('No machines yet').waitFor();
  await assertAccessible(page, 'no machines');
  await page.getByRole('link', { name: 'Create machine' }).first().click();
  await page.getByText('0.0116 / hour').first().waitFor();
  await page.getByLabel('Name', { exact: true }).fill(NAME);
  await page.getByRole('button', { name: 'Show as code' }).click();
  await page.getByText('"instance_type":"t2.micro"').waitFor();
  await assertAccessible(page, 'the form of a machine');
  await page.getByRole('button', { name: 'Create and start' }).click();

  // While it boots, under its name.
  await page.getByLabel('Newest line of the console').waitFor();
  await page.getByText('Connected', { exact: true }).waitFor();
  await shows(/root@.*#/);
  await page.getByLabel('Newest line of the console').waitFor({ state: 'detached' });
  const typeLine = async (line: string) => {
    await page.locator('.xterm-helper-textarea').focus();
    await page.keyboard.type(`${line}\n`);
  };
  await typeLine('uname -s; echo $((6*7))-done');
  await shows(/Linux[\s\S]*42-done/);
  await typeLine("printf '\\033[38;2;250;120;10mtrue-%s\\033[0m\\n' color");
  await shows(/true-color/);
  // The terminal may redraw its rows at any moment.
  await eventually('the text has its color', async () => {
    const color = await page.evaluate(`[...document.querySelectorAll('.xterm-rows span')]
      .filter(({ textContent }) => textContent === 'true-color')
      .map((span) => getComputedStyle(span).color)[0]`);
    return color === 'rgb(250, 120, 10)';
  });

  const sent: unknown[] = [];
  page.on('websocket', (socket) => socket.on('framesent', ({ payload }) => sent.push(payload)));
  await page.reload();
  await page.getByText('Connected', { exact: true }).waitFor();
  await shows(/Linux[\s\S]*42-done/);
  assert.deepEqual(sent, [], 'what the shell asked of a terminal before is not answered again');
  await typeLine('echo again-$((1+1))');
  await shows(/again-2/);
  await page.keyboard.press('Control+.');
  await eventually('the keys that leave the console do', () =>
    page.evaluate('document.activeElement.textContent === "Paste"'),
  );
  await assertAccessible(page, 'the console');
  for (const what of ['Stop', 'Restart', 'Power off', 'Delete machine'])
    await assertAsks(page, `Actions for ${NAME}`, what);
});

step('a text is pasted in as it stands', async () => {
  const { page } = ada;
  await page.getByRole('button', { name: 'Paste' }).click();
  await assertAccessible(page, 'the window for a text', '[role=dialog]');
  await page
    .getByRole('textbox', { name: 'Paste text into the console' })
    .fill('echo "a  b"\necho pasted-$((2+3))\n');
  await page.getByRole('button', { name: 'Paste text' }).click();
  await shows(/a {2}b[\s\S]*pasted-5/);
});

step('10 KB are pasted on the full screen, and nothing is lost', async () => {
  const { page } = ada;
  await page.getByRole('button', { name: 'Full screen' }).click();
  await page.getByRole('button', { name: 'Paste' }).click();
  const lines = Array.from({ length: 200 }, (_, line) => `${line} ${'grüße 😀 '.repeat(4)}`).join('\n');
  await page.getByRole('textbox', { name: 'Paste text into the console' }).fill(`md5sum <<E\n${lines}\nE\n`);
  await page.getByRole('button', { name: 'Paste text' }).click();
  await shows(new RegExp(createHash('md5').update(`${lines}\n`).digest('hex')));
  await page.getByRole('button', { name: 'Exit full screen' }).click();
  await page.getByRole('button', { name: 'Full screen' }).waitFor();
});

step('who has to sign in anew is at the same console afterwards', async () => {
  const { page, user } = ada;
  await user.expect(200, '/api/account/sessions', { method: 'DELETE' });
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Connected', { exact: true }).waitFor();
  await page.locator('.xterm-helper-textarea').focus();
  await page.keyboard.type('echo anew-$((4+4))\n');
  await shows(/anew-8/);
});

step('its facts, log and charts are shown, and markup in names is text', async () => {
  const { page } = ada;
  await page.getByRole('tab', { name: 'Overview' }).click();
  await page.getByText(/^ssh .*root@127\./).waitFor();
  assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), NAME);
  await assertAccessible(page, 'the facts');
  await page.getByRole('tab', { name: 'Log' }).click();
  const log = page.locator('pre', { hasText: '42-done' });
  await log.waitFor();
  await assertAccessible(page, 'the log');
  await typeElsewhere('seq 300; echo followed-$((3+4))\r');
  await log.filter({ hasText: 'followed-7' }).waitFor();
  const hidden = '(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)';
  await eventually(
    'the end is in sight',
    async () => Number(await page.evaluate(`${hidden}(document.querySelector('main pre'))`)) < 2,
  );
  await page.evaluate("document.querySelector('main pre').scrollTo(0, 0)");
  await page.getByRole('button', { name: 'Follow log' }).click();
  await page.getByText('following', { exact: true }).waitFor();
  await page.getByRole('tab', { name: 'Charts' }).click();
  await eventually('a chart is drawn', async () => {
    if ((await page.locator('.u-over').count()) === 4) return true;
    await page.reload();
    await page.getByText('Gaps are times').waitFor();
    return false;
  });
  await assertAccessible(page, 'the charts');
  await page.getByRole('button', { name: 'Show as table' }).click();
  await page.getByRole('columnheader', { name: 'CPU: used' }).waitFor();
  await page.getByRole('cell', { name: /UTC$/ }).first().waitFor();
  await assertAccessible(page, 'the readings');
  assert.deepEqual(ada.fixture.complaints, []);
});

step('a port is published and taken back, and a refusal is shown at its field', async () => {
  const { page } = ada;
  await page.getByRole('tab', { name: 'Overview' }).click();
  await page.getByRole('button', { name: 'Publish a port' }).click();
  const dialog = page.getByRole('dialog');
  await assertAccessible(page, 'the form of a published port', '[role=dialog]');
  await dialog.getByLabel('Public port').fill('22');
  await dialog.getByRole('button', { name: 'Publish', exact: true }).click();
  await dialog.getByText(/must be from 62100 to 62999/).waitFor();
  await dialog.getByLabel('Public port').fill('');
  await page.keyboard.press('Enter');
  const remove = page.getByRole('button', { name: /^Remove .*:62\d{3}$/ });
  await remove.waitFor();
  await remove.click();
  await remove.waitFor({ state: 'detached' });
});

step('it is found with the palette, stopped, and deleted', async () => {
  const { page, user } = ada;
  await page.goto(`${ada.fixture.cloud.api}/machines`);
  await page.getByText('running').waitFor();
  await assertAccessible(page, 'the list of machines');
  await page.keyboard.press('Control+k');
  await page.getByPlaceholder(/Go to a page/).fill('web');
  const found = page.locator('.mantine-Spotlight-action', { hasText: NAME });
  await found.filter({ hasText: 'Console of' }).waitFor();
  await found.filter({ hasText: 'Machine · running' }).click();
  await page.getByRole('tab', { name: 'Console' }).waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('button', { name: 'Start', exact: true }).waitFor();
  const [vm] = await user.expect(200, '/api/vms');
  assert.equal(vm.state, 'stopped');
  await page.getByRole('button', { name: /Actions for/ }).click();
  await page.getByRole('menuitem', { name: 'Delete machine' }).click();
  await typeName(page, NAME);
  await page.getByText('No machines yet').waitFor();
  assert.deepEqual(await user.expect(200, '/api/vms'), []);
});

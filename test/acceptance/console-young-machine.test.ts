/** A machine in its first minutes, in both browsers: its boot under the name, and charts of its own life. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf, PASSWORD } from './console-kit.ts';
import { Firefox } from './firefox-kit.ts';
import { ChromiumHands, type Hands } from './hands.ts';
import { helloDisk, settled, upload } from './images-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = noBrowser || cannotRunGuests();
/** A folder for pictures of what is tested. */
const PICTURES = process.env.YOUNG_PICTURES;
const SIZES = [
  { width: 1280, height: 900 },
  { width: 390, height: 844 },
];
/** Longer than a line of a phone. */
const SAID = 'a line of the guest that is much longer than the page of a phone is wide, and as long again';
const LINE = `document.querySelector('[aria-label="Newest line of the console"]')`;
const NOT_TOO_WIDE = 'document.documentElement.scrollWidth <= document.documentElement.clientWidth';
const TOP_OF_NAME = `document.querySelector('h1').getBoundingClientRect().top`;
const SPANS = ['hour', 'day', 'month'];
const READINGS = 4;

let fixture: ConsoleFixture;
let user: CheckedClient;
/** Ids of machines that say SAID, or nothing, and never that they are ready. */
const ids = new Map<'talks' | 'silent', string>();
before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open();
  const page = await fixture.signedUp('young', '/machines');
  const { key = '' } = await clientOf(fixture, page);
  const admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  user = admin.as(key);
  for (const [name, word] of [
    ['talks', SAID],
    ['silent', ''],
  ] as const) {
    const { image_id: image } = await upload(admin, helloDisk(word), { name });
    assert.equal((await settled(admin, image)).state, 'ready');
    ids.set(name, (await newVm(user, { name, image })).split('/').at(-1) ?? '');
  }
});
after(async () => {
  if (skip || fixture === undefined) return;
  await removeAll(user);
  await fixture.close();
});

const pathOf = (name: 'talks' | 'silent') => `${fixture.cloud.api}/machines/${ids.get(name)}`;
/** Also when it never ran. */
const stop = (name: 'talks' | 'silent') =>
  user.call(`/api/vms/${ids.get(name)}/stop?force=true`, { method: 'POST' });

async function signIn(hands: Hands): Promise<void> {
  await hands.goto(`${fixture.cloud.api}/sign-in?next=/machines`);
  await hands.says('Welcome back.');
  await hands.evaluate(`document.querySelector('[autocomplete=username]').focus()`);
  await hands.type('young');
  await hands.press('Tab');
  await hands.type(PASSWORD);
  await hands.press('Enter');
  await hands.says('talks');
}

interface Look {
  readonly hands: Hands;
  readonly resize: (size: (typeof SIZES)[number]) => Promise<void>;
  readonly picture: (name: string) => Promise<void>;
}

/** One line high, however long it is, and the name stays where it is. */
async function seesBoot({ hands, resize, picture }: Look): Promise<void> {
  for (const [name, words] of [
    ['silent', 'The guest has not written anything yet.'],
    ['talks', SAID],
  ] as const) {
    await resize(SIZES[0] as (typeof SIZES)[number]);
    await hands.goto(pathOf(name));
    await hands.holds(
      'the machine is stopped',
      `${LINE} === null && document.body.innerText.includes('Start')`,
    );
    const top = await hands.evaluate(TOP_OF_NAME);
    await hands.pressOn('button', 'Start');
    await hands.holds('its line is shown', `${LINE}?.innerText === '${words}'`);
    assert.equal(await hands.evaluate(TOP_OF_NAME), top);
    for (const size of SIZES) {
      await resize(size);
      await hands.holds('it is one line high', `${LINE}.getBoundingClientRect().height < 30`);
      await hands.holds('it is not too wide', NOT_TOO_WIDE);
      await picture(`boot-${name}-${size.width}`);
    }
  }
}

/** A line needs two readings: in each span, all of this minute are there. */
async function seesCharts({ hands, resize, picture }: Look): Promise<void> {
  const path = `/api/vms/${ids.get('talks')}/metrics?step=15`;
  await eventually('readings', async () => {
    const from = new Date(Date.now() - 1_800_000).toISOString();
    return ((await user.expect(200, `${path}&from=${from}`)).history ?? []).length >= READINGS;
  });
  for (const span of SPANS) {
    await resize(SIZES[0] as (typeof SIZES)[number]);
    await hands.goto(`${pathOf('talks')}?tab=charts&span=${span}`);
    await hands.holds('charts are drawn', `document.querySelectorAll('main [role=img] canvas').length === 4`);
    for (const size of SIZES) {
      await resize(size);
      await hands.holds('they are not too wide', NOT_TOO_WIDE);
      await picture(`charts-${span}-${size.width}`);
    }
    await hands.pressOn('button', 'Show as table');
    await hands.holds('a row each', `document.querySelectorAll('main tbody tr').length >= ${READINGS}`);
  }
}

test('in Chromium', { skip }, async () => {
  const page = await fixture.newPage();
  const hands = new ChromiumHands(page);
  const look: Look = {
    hands,
    resize: (size) => page.setViewportSize(size),
    picture: async (name) => {
      if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/${name}.png` });
    },
  };
  await signIn(hands);
  await seesBoot(look);
  await assertAccessible(page, 'a boot');
  await seesCharts(look);
  assert.deepEqual(fixture.complaints, []);
});

describe('in Firefox', { skip: skip || notInstalled('firefox-esr') }, () => {
  let firefox: Firefox;
  before(async () => {
    firefox = await Firefox.open();
    await firefox.startAfresh();
  });
  after(() => firefox?.close());

  test('the same', async () => {
    for (const name of ['silent', 'talks'] as const) await stop(name);
    const look: Look = {
      hands: firefox,
      resize: (size) => firefox.resize(size),
      picture: async (name) => {
        if (PICTURES !== undefined) await firefox.picture(`${PICTURES}/firefox-${name}.png`);
      },
    };
    await signIn(firefox);
    await seesBoot(look);
    await seesCharts(look);
    assert.deepEqual(firefox.complaints, []);
  });
});

/** Audio, video and PDF files viewed in the console. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { Client } from '../harness/client.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { askIn, ConsoleFixture } from './console-kit.ts';
import { hostileTags } from './hostile-files.ts';
import { framesFrom, paper, wav, webm } from './media-files.ts';

const skip = noBrowser;
const PICTURES = process.env.MEDIA_PICTURES;
const SOUND_SECONDS = 600;
const FILM_SECONDS = 60;

let fixture: ConsoleFixture;
let page: Page;
/** Responses for files: their status, and the first byte. */
const answers: { readonly url: string; readonly status: number; readonly range: string }[] = [];

before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open();
  page = await fixture.signedUp('viewer', '/storage');
  page.setDefaultTimeout(60_000);
  const { api_key } = (await askIn(page, '/api/account')) as { api_key: string };
  const client = new Client(fixture.cloud.api, api_key);
  await client.call('/api/buckets', { json: { name: 'media' } });
  const files: [string, string | Uint8Array][] = [
    ['sound.wav', wav(SOUND_SECONDS)],
    ['film.webm', webm(await framesFrom(page, FILM_SECONDS))],
    ['paper.pdf', paper('Words of a paper')],
    ['page.pdf', `<html><title>none</title>${hostileTags('http://127.0.0.1:9')}`],
  ];
  for (const [name, content] of files)
    assert.equal((await client.upload('media', name, content)).status, 200, name);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  page.on('response', (response) => {
    const range = response.headers()['content-range'] ?? '';
    answers.push({ url: response.url(), status: response.status(), range });
  });
});
after(() => fixture?.close());

const SIZES = [
  { width: 1400, height: 900 },
  { width: 390, height: 844 },
];

/** Opens a file beside the list, or over it on a phone. */
async function open(name: string, size = SIZES[0]): Promise<void> {
  await page.setViewportSize(size ?? { width: 1400, height: 900 });
  await page.goto(`${fixture.cloud.api}/storage/media`);
  answers.length = 0;
  await page.getByRole('link', { name, exact: true }).click();
  await page.getByRole('dialog', { name }).waitFor();
}

async function look(name: string): Promise<void> {
  const { width } = page.viewportSize() ?? { width: 0 };
  if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/${name}-${width}.png` });
}

/** Seeks to this second of the audio or video; resolves with the resulting position. */
const seek = (seconds: number) => `new Promise((resolve, reject) => {
  const media = document.querySelector('audio, video');
  const fail = () => reject(new Error('code ' + media.error?.code + ' ' + media.error?.message));
  if (media.error) fail();
  media.addEventListener('error', fail, { once: true });
  const go = () => {
    media.addEventListener('seeked', () => resolve([media.duration, media.currentTime, media.readyState].join()), { once: true });
    media.currentTime = ${seconds};
  };
  if (media.readyState >= 1) go();
  else media.addEventListener('loadedmetadata', go, { once: true });
})`;

/** Whether the frame shows white paper, and not the grey of a viewer that never starts. */
async function showsPaper(): Promise<boolean> {
  const picture = await page.getByRole('dialog').locator('iframe').screenshot();
  const share = await page.evaluate(`(async () => {
    const picture = new Image();
    picture.src = 'data:image/png;base64,${picture.toString('base64')}';
    await picture.decode();
    const paint = Object.assign(document.createElement('canvas'), { width: picture.width, height: picture.height })
      .getContext('2d');
    paint.drawImage(picture, 0, 0);
    const { data } = paint.getImageData(0, 0, picture.width, picture.height);
    let white = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] + data[at + 1] + data[at + 2] > 750) white++;
    return white / (picture.width * picture.height);
  })()`);
  return Number(share) > 0.1;
}

describe('files that are played or shown', { skip }, () => {
  for (const size of SIZES)
    test(`sound and film are played from any second, at ${size.width}`, async () => {
      for (const [name, seconds] of [
        ['sound.wav', SOUND_SECONDS],
        ['film.webm', FILM_SECONDS],
      ] as const) {
        await open(name, size);
        await page.locator('audio, video').waitFor();
        const [duration, at, ready] = String(await page.evaluate(seek(seconds - 5)))
          .split(',')
          .map(Number);
        assert.deepEqual([duration, at], [seconds, seconds - 5], name);
        assert.ok(Number(ready) >= 2, 'what is there is shown');
        const parts = answers.filter(({ url }) => url.includes(name));
        assert.deepEqual([...new Set(parts.map(({ status }) => status))], [206], name);
        const starts = parts.map(({ range }) => Number(/^bytes (\d+)-/.exec(range)?.[1]));
        assert.ok(
          starts.some((start) => start > 0),
          `${name}: from ${starts}`,
        );
        assert.equal(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'), 0);
        await assertAccessible(page, name);
        await look(name);
      }
      assert.deepEqual(fixture.complaints, []);
    });

  test('a paper is shown in the sandbox of its origin; a page that is called one is not', async () => {
    for (const size of SIZES) {
      await open('paper.pdf', size);
      await eventually('the viewer shows it', async () =>
        page.frames().some((frame) => frame.url().startsWith('chrome-extension:')),
      );
      await eventually('the paper is white', showsPaper);
      await look('paper.pdf');
      assert.equal(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'), 0);
    }
    await open('page.pdf');
    await page.getByRole('dialog').locator('iframe').waitFor();
    await look('page.pdf');
    assert.doesNotMatch(await page.title(), /ran/);
    assert.deepEqual(fixture.complaints, []);
  });
});

/** The forms of a new machine and a new database while this host is still preparing what they need. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Route } from 'playwright-core';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, openJourney, stepsOf, type Traveller } from './console-journey.ts';

const skip = noBrowser;
const step = stepsOf(skip);
let ada: Traveller;
/** What the host says of its parts; null: they are there. */
let preparing: { readonly percent: number | null; readonly step: string } | null = null;

/** The cloud's own answer, with parts that are not there yet: a host prepares each only once. */
async function whilePreparing(route: Route): Promise<void> {
  const response = await route.fetch();
  const body = await response.json();
  const coming = { preparing, available: preparing === null };
  if (Array.isArray(body))
    for (const engine of body) if (engine.engine === 'postgresql') Object.assign(engine, coming);
  if (body.components !== undefined) body.components.compute.preparing = preparing;
  await route.fulfill({ response, json: body });
}

before(async () => {
  if (skip) return;
  ada = await openJourney('/machines');
  await ada.page.route(/\/api\/(?:system\/status|database-engines)(?:\?.*)?$/, whilePreparing);
});
after(async () => {
  if (!skip) await ada?.fixture.close();
});

const open = (path: string) => ada.page.goto(`${ada.fixture.cloud.api}${path}`);

step('a machine that is created now waits for its image, and the form says how far that is', async () => {
  const { page } = ada;
  preparing = { percent: 42, step: 'fetching packages' };
  await open('/machines/new');
  await page
    .getByText(/still building the image \(42 %\)\. A machine that starts now waits for it/)
    .waitFor();
  await assertAccessible(page, 'the form of a machine whose image is being built');
  assert.ok(await page.getByRole('button', { name: 'Create and start' }).isEnabled());
});

step('a database waits for its engine, which can be chosen', async () => {
  const { page, user } = ada;
  preparing = { percent: null, step: 'waiting for the network' };
  await open('/databases/new');
  await page
    .getByText(/still installing the engine \(waiting for the network\)\. A new database waits/)
    .waitFor();
  await assertAccessible(page, 'the form of a database whose engine is being installed');
  await page.getByText('PostgreSQL', { exact: true }).click();
  const sent = page.waitForRequest(
    (request) => request.method() === 'POST' && /\/api\/databases$/.test(request.url()),
  );
  await page.getByRole('button', { name: 'Create database' }).click();
  assert.equal((await sent).postDataJSON().engine, 'postgresql');
  for (const { database_id: id } of await user.expect(200, '/api/databases'))
    await user.expect(200, `/api/databases/${id}`, { method: 'DELETE' });
});

step('nothing is said once the parts are there', async () => {
  const { page } = ada;
  preparing = null;
  for (const path of ['/machines/new', '/databases/new']) {
    await open(path);
    await page
      .getByRole('button', { name: /^Create/ })
      .first()
      .waitFor();
    assert.equal(await page.getByText(/still (?:building|preparing)/).count(), 0);
  }
});

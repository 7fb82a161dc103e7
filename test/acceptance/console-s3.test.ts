/** S3 in the console, with user input: keys by purpose, the tabs of a bucket. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, assertAsks, assertOpens, typeName } from './console-journey.ts';
import { ConsoleFixture, clientOf, quiet } from './console-kit.ts';
import { newKeyPair, newS3, newUpload, S3Client } from './s3-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(async () => {
  await fixture?.close();
  assert.deepEqual(fixture?.complaints ?? [], []);
});

/** Nothing of the page is outside a narrow window. */
async function assertNarrow(page: Page, what: string): Promise<void> {
  // The navigation slides out of view.
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 390, height: 844 });
  await quiet(page);
  const width = await page.evaluate('document.documentElement.scrollWidth');
  assert.ok(Number(width) <= 390, `${what}: ${width} pixels`);
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** Creates an append-only key for the bucket `backups`; its dialog stays open. */
async function makeBackupKey(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Create S3 key' }).first().click();
  const form = page.getByRole('dialog', { name: 'Create S3 key' });
  await form.getByRole('textbox', { name: 'Name' }).fill('laptop');
  await form.getByRole('radio', { name: /Append-only backup/ }).click();
  await form.getByText('in other buckets, this key cannot replace files').waitFor();
  await form.getByRole('combobox', { name: 'Bucket' }).click();
  await page.getByRole('option', { name: 'backups' }).click();
  await form.getByRole('switch', { name: 'Enable versioning for backups' }).waitFor();
  await form.getByRole('button', { name: 'Create S3 key' }).click();
  await page.getByRole('dialog', { name: 'laptop was created' }).waitFor();
}

describe('S3 access', () => {
  test('leads from the first steps to a key for backups that works and destroys nothing', {
    skip,
  }, async () => {
    const page = await fixture.signedUp('backer');
    const client = await clientOf(fixture, page);
    await page.getByRole('link', { name: 'S3 access' }).click();
    await page.getByRole('heading', { name: 'No S3 keys yet' }).waitFor();
    await page.getByText(fixture.cloud.data, { exact: true }).waitFor();
    await page.getByText('Only programs on this computer reach this address.').waitFor();
    await assertAccessible(page, 'no keys');
    await assertNarrow(page, 'no keys');
    await client.call('/api/buckets', { json: { name: 'backups' } });
    await page.reload();
    await makeBackupKey(page);
    const made = page.getByRole('dialog', { name: 'laptop was created' });
    await made.getByText('The secret is shown only once').waitFor();
    await made.getByRole('button', { name: 'Test connection' }).click();
    await made.getByText('The key works.').waitFor();
    assert.equal(await made.getByLabel('Passed').count(), 5);
    await assertAccessible(page, 'the key', '[role=dialog]');
    const codes = await made.locator('code').allInnerTexts();
    const [access_key_id = '', secret_access_key = ''] = codes;
    const thief = new S3Client(fixture.cloud.data, { access_key_id, secret_access_key });
    await thief.ok('PUT', '/backups/a', { body: 'kept' });
    const versions = (await thief.ok('GET', '/backups', { query: 'versions' })).text;
    const [, version = ''] = /<VersionId>(.*?)</.exec(versions) ?? [];
    await thief.ok('PUT', '/backups/a', { body: 'ransom' });
    await thief.refused(403, 'AccessDenied', ['DELETE', '/backups/a', { query: `versionId=${version}` }]);
    assert.equal((await thief.ok('GET', '/backups/a', { query: `versionId=${version}` })).text, 'kept');
    await made.getByRole('button', { name: 'I have stored it' }).click();
    await made.waitFor({ state: 'detached' });
    const row = page.getByRole('row', { name: /laptop/ });
    await row.getByText('Append only').waitFor();
    await row.getByRole('cell', { name: 'backups', exact: true }).waitFor();
    assert.doesNotMatch(await page.content(), new RegExp(secret_access_key));
    await page.close();
  });

  test('says what a key may do and what fails, and revokes it', { skip }, async () => {
    const page = await fixture.signedUp('keeper', '/storage/s3');
    const client = await clientOf(fixture, page);
    const limits = { buckets: [{ name: 'not-there' }] };
    await newKeyPair(client, { name: 'misled', ...limits });
    await newKeyPair(client, { name: 'web', scopes: ['storage:read'], expires_in: 86_400 });
    await newKeyPair(client, { name: 'machines', scopes: ['compute:*'] });
    await page.reload();
    await page.getByRole('row', { name: /web/ }).getByText('Read only').waitFor();
    assert.equal(await page.getByText('machines', { exact: true }).count(), 0);
    await assertAccessible(page, 'the keys');
    await assertNarrow(page, 'the keys');
    await assertOpens(page, 'Test connection of misled');
    await page.getByRole('button', { name: 'Test connection of misled' }).click();
    const result = page.getByRole('dialog');
    await result.getByRole('button', { name: 'Test connection' }).click();
    await result.getByText('The test failed:').waitFor();
    assert.equal(await result.getByText('NoSuchBucket').count(), 2);
    await assertAccessible(page, 'what fails', '[role=dialog]');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Revoke web' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('web was revoked').waitFor();
    await page.getByRole('row', { name: /web/ }).waitFor({ state: 'detached' });
    await page.close();
  });

  test('is found in the palette, and its form is used with the keyboard', { skip }, async () => {
    const page = await fixture.signedUp('typist', '/');
    await page.getByRole('navigation').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('Create S3 key');
    await page.keyboard.press('Enter');
    const form = page.getByRole('dialog', { name: 'Create S3 key' });
    await form.getByRole('textbox', { name: 'Name' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.type('by keyboard');
    await assertAccessible(page, 'the form', '[role=dialog]');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'by keyboard was created' }).waitFor();
    await page.keyboard.press('Escape');
    await page
      .getByRole('row', { name: /by keyboard/ })
      .getByText('Full')
      .waitFor();
    await page.close();
  });
});

describe('encryption keys', () => {
  test('are made, disabled, enabled and deleted', { skip }, async () => {
    const page = await fixture.signedUp('locker', '/storage/s3');
    const s3 = await newS3(fixture.cloud.data, await clientOf(fixture, page));
    await page.getByRole('link', { name: 'Manage encryption keys' }).click();
    await page.getByRole('heading', { name: 'No encryption keys yet' }).waitFor();
    await assertAccessible(page, 'no encryption keys');
    await page.getByRole('button', { name: 'Create encryption key' }).first().click();
    const form = page.getByRole('dialog', { name: 'Create encryption key' });
    await form.getByRole('textbox', { name: 'Name' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.type('photos');
    await page.keyboard.press('Enter');
    await page.getByText('photos was created').waitFor();
    const sse = 'x-amz-server-side-encryption';
    const headers = { [sse]: 'aws:kms', [`${sse}-aws-kms-key-id`]: 'photos' };
    await s3.ok('PUT', '/locked-up');
    await s3.ok('PUT', '/locked-up/a', { headers, body: 'kept' });
    const row = page.getByRole('row', { name: /photos/ });
    await row.getByText('Enabled').waitFor();
    await assertNarrow(page, 'encryption keys');
    await assertAsks(page, 'Disable photos');
    await row.getByRole('button', { name: 'Disable photos' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await row.getByText('Disabled').waitFor();
    await assertAccessible(page, 'a disabled key');
    await s3.refused(400, 'KMS.DisabledException', ['GET', '/locked-up/a']);
    await assertAsks(page, 'Delete photos');
    await row.getByRole('button', { name: 'Delete photos' }).click();
    await typeName(page, 'photos');
    await page.getByRole('dialog').getByText('Objects or uploads are encrypted with photos').waitFor();
    await page.keyboard.press('Escape');
    await row.getByRole('button', { name: 'Enable photos' }).click();
    await row.getByText('Enabled').waitFor();
    assert.equal((await s3.ok('GET', '/locked-up/a')).text, 'kept');
    await page.close();
  });
});

describe('the set-up', () => {
  test('of every client names the key and the bucket, and wide lines scroll', { skip }, async () => {
    const page = await fixture.signedUp('reader-of-all', '/storage/s3');
    const choice = page.getByRole('combobox', { name: 'S3 client' });
    await choice.click();
    const labels = await page.getByRole('option').allInnerTexts();
    assert.equal(labels.length, 10);
    await page.keyboard.press('Escape');
    for (const label of labels) {
      await choice.click();
      await page.getByRole('option', { name: label, exact: true }).click();
      const lines = await page.locator('pre').innerText();
      for (const word of ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY']) assert.match(lines, new RegExp(word), label);
      assert.match(
        lines,
        label.startsWith('pgBackRest') ? /127\.0\.0\.1/ : new RegExp(fixture.cloud.data.slice(7)),
        label,
      );
    }
    await assertNarrow(page, 'the set-up');
    await page.close();
  });
});

describe('the tabs of a bucket', () => {
  test('show uploads in progress, and abort one', { skip }, async () => {
    const page = await fixture.signedUp('uploader', '/storage');
    const client = await clientOf(fixture, page);
    await client.call('/api/buckets', { json: { name: 'busy' } });
    const s3 = await newS3(fixture.cloud.data, client);
    await page.goto(`${fixture.cloud.api}/storage/busy`);
    await page.getByRole('tab', { name: 'Uploads in progress' }).click();
    await page.getByRole('heading', { name: 'No uploads in progress' }).waitFor();
    await assertAccessible(page, 'no uploads');
    const uploadId = await newUpload(s3, '/busy/in/disk.img');
    await s3.ok('PUT', '/busy/in/disk.img', { query: `partNumber=1&uploadId=${uploadId}`, body: '12345' });
    await page.reload();
    const row = page.getByRole('row', { name: /in\/disk\.img/ });
    await row.getByText('5 B').waitFor();
    await assertAccessible(page, 'uploads');
    await assertNarrow(page, 'uploads');
    await assertAsks(page, 'Abort in/disk.img');
    await page.getByRole('button', { name: 'Abort in/disk.img' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Abort' }).click();
    await page.getByText('The upload of in/disk.img was aborted').waitFor();
    await page.getByRole('heading', { name: 'No uploads in progress' }).waitFor();
    assert.match(page.url(), /tab=uploads/);
    await page.getByRole('tab', { name: 'Objects' }).click();
    await page.getByText('No files yet').waitFor();
    await page.close();
  });

  test('say who can read an object, open it by a policy and close it again', { skip }, async () => {
    const page = await fixture.signedUp('opener', '/storage');
    const client = await clientOf(fixture, page);
    await client.call('/api/buckets', { json: { name: 'opened' } });
    await client.upload('opened', 'a.txt', 'seen by all');
    await page.goto(`${fixture.cloud.api}/storage/opened?tab=settings#access`);
    const everyone = page.getByRole('row', { name: /Everyone, without a key/ });
    await everyone.waitFor();
    assert.equal(await everyone.getByText('no', { exact: true }).count(), 4);
    await page.getByRole('button', { name: 'Another account may read and write' }).click();
    const save = page.getByRole('region', { name: 'Policy' }).getByRole('button', { name: 'Save' });
    await save.click();
    await page.getByRole('alert').getByText('Invalid principal in policy').waitFor();
    const field = page.getByRole('textbox', { name: 'Policy as JSON' });
    await field.fill('{ "Version": ');
    await page.getByText('This is not JSON').waitFor();
    assert.equal(await save.isDisabled(), true);
    await page.getByRole('button', { name: 'Everyone may read' }).click();
    await save.click();
    await page.getByText('This bucket is public').waitFor();
    await everyone.getByText('yes').waitFor();
    await assertAccessible(page, 'permissions');
    await assertNarrow(page, 'permissions');
    // A header of S3, so that the request counts as S3.
    const headers = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
    const read = async () => (await fetch(`${fixture.cloud.data}/opened/a.txt`, { headers })).status;
    assert.equal(await read(), 200);
    await page.getByRole('textbox', { name: 'Object' }).fill('a.txt');
    await everyone.getByText('yes').waitFor();
    await page.getByRole('switch', { name: 'Restrict public policies' }).click();
    await page.getByRole('region', { name: 'Public access' }).getByRole('button', { name: 'Save' }).click();
    await everyone.getByText('yes').waitFor({ state: 'detached' });
    assert.equal(await read(), 403);
    await assertAsks(page, 'Remove policy');
    await page.getByRole('button', { name: 'Remove policy' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove policy' }).click();
    await page.getByText('The policy of opened was removed').waitFor();
    await page.getByText('This bucket is public').waitFor({ state: 'detached' });
    await page.close();
  });

  test('grant by a list, until the owner alone owns what is in the bucket', { skip }, async () => {
    const page = await fixture.signedUp('granter', '/storage');
    const client = await clientOf(fixture, page);
    await client.call('/api/buckets', { json: { name: 'granted' } });
    await page.goto(`${fixture.cloud.api}/storage/granted?tab=settings#access`);
    const list = page.getByRole('region', { name: 'Access control list' });
    const ownership = page.getByRole('region', { name: 'Object ownership' });
    await list.getByText('No grants to other accounts.').waitFor();
    await list.getByRole('button', { name: 'Add grant' }).click();
    await list.getByRole('textbox', { name: 'Account' }).fill('nobody@example.org');
    await list.getByRole('button', { name: 'Save' }).click();
    await list.getByRole('alert').waitFor();
    await list.getByRole('combobox', { name: 'Who' }).click();
    await page.getByRole('option', { name: 'Everyone, without a key' }).click();
    await list.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The ACL of granted was saved').waitFor();
    await page.getByText('This bucket is public').waitFor();
    const headers = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
    const read = async () => (await fetch(`${fixture.cloud.data}/granted`, { headers })).status;
    assert.equal(await read(), 200);
    await assertAccessible(page, 'a list');
    await assertNarrow(page, 'a list');
    await ownership.getByRole('radio', { name: /You, always/ }).click();
    await ownership.getByRole('button', { name: 'Save' }).click();
    await ownership.getByRole('alert').waitFor();
    await list.getByRole('button', { name: 'Remove grant 1' }).click();
    await list.getByRole('button', { name: 'Save' }).click();
    await page.getByText('This bucket is public').waitFor({ state: 'detached' });
    await ownership.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Object ownership in granted was changed').waitFor();
    assert.equal(await read(), 403);
    const { body } = await client.call('/api/buckets/granted/settings');
    assert.deepEqual([body.acl, body.ownership], [null, 'BucketOwnerEnforced']);
    await page.close();
  });

  test('show what rules would delete, and lock what is uploaded', { skip }, async () => {
    const page = await fixture.signedUp('cleaner', '/storage');
    const client = await clientOf(fixture, page);
    await client.call('/api/buckets', { json: { name: 'cleaned' } });
    for (const name of ['tmp/a', 'tmp/b', 'kept']) await client.upload('cleaned', name, 'x');
    const s3 = await newS3(fixture.cloud.data, client);
    await page.goto(`${fixture.cloud.api}/storage/cleaned?tab=settings#lifecycle`);
    await page.getByText('nothing is deleted automatically').waitFor();
    await page.getByRole('button', { name: 'Add rule' }).click();
    await page.getByRole('textbox', { name: 'Names that begin with' }).fill('tmp/');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('At least one action').waitFor();
    await page.getByRole('textbox', { name: 'Delete files after days' }).fill('7');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByText('The first 2 files to be removed, of 2 files').waitFor();
    await page.getByRole('row', { name: /tmp\/b/ }).waitFor();
    await assertAccessible(page, 'rules that delete');
    await assertNarrow(page, 'rules that delete');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The rules of cleaned were saved').waitFor();
    const rules = (await s3.ok('GET', '/cleaned', { query: 'lifecycle' })).text;
    assert.match(rules, /<Prefix>tmp\/<\/Prefix>.*<Days>7<\/Days>/s);

    await page.getByRole('link', { name: 'Object lock' }).click();
    await page.getByText('Enable versioning first').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Enable object lock' }).isDisabled(), true);
    await client.call('/api/buckets/cleaned', { method: 'PATCH', json: { versioning: true } });
    await page.reload();
    await assertAsks(page, 'Enable object lock');
    await page.getByRole('button', { name: 'Enable object lock' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Enable object lock' }).click();
    await page.getByText('Object lock is on, and stays on.').waitFor();
    await page.getByRole('radio', { name: /Governance/ }).click();
    await page.getByRole('textbox', { name: 'For' }).fill('2');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The lock of cleaned was changed').waitFor();
    await assertAccessible(page, 'the lock');
    await assertNarrow(page, 'the lock');
    const lock = (await s3.ok('GET', '/cleaned', { query: 'object-lock' })).text;
    assert.match(lock, /<Mode>GOVERNANCE<\/Mode><Days>2<\/Days>/);
    await page.close();
  });

  test('change tags and cross-origin rules, which S3 clients see', { skip }, async () => {
    const page = await fixture.signedUp('tagger', '/storage');
    const client = await clientOf(fixture, page);
    await client.call('/api/buckets', { json: { name: 'tagged' } });
    const s3 = await newS3(fixture.cloud.data, client);
    await page.goto(`${fixture.cloud.api}/storage/tagged?tab=settings#tags`);
    await page.getByText('No tags yet.').waitFor();
    await page.getByRole('button', { name: 'Add tag' }).click();
    await page.getByRole('textbox', { name: 'Tag', exact: true }).fill('team');
    await page.getByRole('textbox', { name: 'Value' }).fill('<b>a & b</b>');
    await page.getByRole('button', { name: 'Add tag' }).click();
    await page.getByRole('textbox', { name: 'Tag', exact: true }).last().fill('team');
    await page.getByText('This tag appears twice').first().waitFor();
    assert.equal(await page.getByRole('button', { name: 'Save' }).isDisabled(), true);
    await page.getByRole('button', { name: 'Remove team' }).last().click();
    await assertAccessible(page, 'tags');
    await assertNarrow(page, 'tags');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('Tags have letters, numbers').waitFor();
    await page.getByRole('textbox', { name: 'Value' }).fill('a @ b');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The tags of tagged were saved').waitFor();
    const tags = (await s3.ok('GET', '/tagged', { query: 'tagging' })).text;
    assert.match(tags, /<Key>team<\/Key><Value>a @ b<\/Value>/);
    await page.reload();
    assert.equal(await page.getByRole('textbox', { name: 'Value' }).inputValue(), 'a @ b');
    await page.getByRole('button', { name: 'Remove team' }).click();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('No tags yet.').waitFor();

    await page.getByRole('link', { name: 'Cross-origin' }).click();
    await page.getByRole('button', { name: 'Add rule' }).click();
    await page.getByRole('combobox', { name: 'Websites' }).fill('https://*.*');
    await page.keyboard.press('Enter');
    await assertAccessible(page, 'rules');
    await assertNarrow(page, 'rules');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('more than one wildcard').waitFor();
    await page.getByRole('combobox', { name: 'Websites' }).press('Backspace');
    await page.getByRole('combobox', { name: 'Websites' }).fill('https://a.example');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The rules of tagged were saved').waitFor();
    const rules = (await s3.ok('GET', '/tagged', { query: 'cors' })).text;
    assert.match(rules, /<AllowedOrigin>https:\/\/a\.example<\/AllowedOrigin>/);
    await page.close();
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkDocs } from './doc-rules.ts';
import { locations, sample } from './sample.ts';

const CODE = { 'server/storage/objects/objects.ts': '', 'libs/net/README.md': '# Net' };

test('links that lead nowhere are found, by their file and by their heading', () => {
  const page = [
    '# The `one`, and two',
    '[a](docs/b.md) [here](#the-one-and-two) [site](https://example.org/x) ![picture](docs/p.png)',
    '[folder](docs/) [gone](docs/gone.md)',
    '[no heading](docs/b.md#none) [heading](docs/b.md#part-1) [not here](#part-1)',
  ].join('\n');
  const files = sample({ 'README.md': page, 'docs/b.md': '## Part 1\n[up](../README.md) [off](b/c.md)' });
  assert.deepEqual(locations(checkDocs(files)), ['README.md:3', 'README.md:4', 'README.md:4', 'docs/b.md:2']);
});

test('names of files that are not there are found, but not in what tells of the past', () => {
  const page = [
    '`storage/objects/objects.ts`, `objects.ts`, `objects/*.ts`, `server/storage/`, `libs/net`',
    '`storage/objects.ts`',
    '`gone.ts` and `server/gone/`',
    '```sh',
    'cat `server/gone.ts`',
    '```',
    '`photos/`, `build/cli`, `account.json`, `*-sql.ts`',
  ].join('\n');
  const files = sample({ ...CODE, 'docs/x.md': page, 'CHANGELOG.md': page, 'docs/decisions/1.md': page });
  assert.deepEqual(locations(checkDocs(files)), ['docs/x.md:2', 'docs/x.md:3', 'docs/x.md:3', 'docs/x.md:7']);
});

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { COMMANDS, TOPICS } from './commands.ts';
import { helpOf, markdownTable } from './help.ts';

const GUIDE = join(import.meta.dirname, '../docs/client.md');

test('docs/client.md ends with the table of commands; UPDATE_DOCS=1 writes it', () => {
  const text = readFileSync(GUIDE, 'utf8');
  const start = text.indexOf('| command |');
  const kept = start < 0 ? text : text.slice(0, start);
  const wanted = `${kept}${markdownTable(TOPICS)}\n`;
  if (process.env.UPDATE_DOCS === '1') writeFileSync(GUIDE, wanted);
  else assert.equal(text, wanted);
});

test('every command explains itself in lines that fit', () => {
  for (const command of COMMANDS) {
    const lines = helpOf(command).split('\n');
    assert.ok(lines[0]?.startsWith(`Usage: cloudlet ${command.name}`));
    for (const line of lines) assert.ok(line.length <= 120, line);
    assert.doesNotMatch(command.summary, /^[A-Z]|\.$/, command.name);
  }
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { describe, test } from 'node:test';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { sharedPostgresql } from '../../testing/shared-postgresql.ts';
import { TcpProxy } from '../../testing/tcp-proxy.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

const put = (name: string) => ({
  sql: 'INSERT INTO settings (name, value) VALUES (?, ?)',
  params: [name, 'x'],
});
const OPEN = `
  import { Alarms } from '${import.meta.resolve('../../platform/alarms.ts')}';
  import { systemClock as clock } from '${import.meta.resolve('../../platform/clock.ts')}';
  import { PostgresqlMetadata } from '${import.meta.resolve('./postgresql-metadata.ts')}';
  await PostgresqlMetadata.open({ url: process.argv[1], clock, alarms: new Alarms(clock), onTakenOver() {} });
  console.log('open');`;

describe('one Cloudlet for a database', { skip: noPostgresql }, () => {
  const { newDatabase, keep, server } = sharedPostgresql();

  function open(url: string) {
    const alarms = new Alarms(systemClock);
    const told: string[] = [];
    const opening = keep(
      PostgresqlMetadata.open({
        url,
        clock: systemClock,
        alarms,
        onTakenOver: (detail) => told.push(detail),
      }),
    );
    return { alarms, told, opening };
  }

  test('a second one is refused, with the place of the first, until that one ends', async () => {
    const url = await newDatabase();
    const first = await open(url).opening;
    await assert.rejects(open(url).opening, (error: Error) => {
      assert.equal(error.name, 'StartupError');
      const place = `on ${hostname()}, process ${process.pid}, since 20`;
      assert.ok(error.message.includes(place), error.message);
      return /: stop that Cloudlet, or use a separate database/.test(error.message);
    });
    await first.commit([put('first')]);
    await first.close();
    const second = await open(url).opening;
    await second.commit([put('second')]);
    await second.close();
  });

  test('of two that start at once on an empty database one is refused', async () => {
    const url = await newDatabase();
    const outcomes = await Promise.allSettled([open(url).opening, open(url).opening]);
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    for (const each of outcomes) if (each.status === 'fulfilled') await each.value.close();
  });

  test('after a kill the next one starts', async () => {
    const url = await newDatabase();
    const child = spawn(process.execPath, ['--input-type=module', '-e', OPEN, url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    const next = await open(url).opening;
    await next.commit([put('next')]);
    await next.close();
  });

  test('a crash of the server leaves the database to the one that has it', async () => {
    const url = await newDatabase();
    const { opening, told } = open(url);
    const metadata = await opening;
    await server().crash();
    await eventually(() =>
      metadata.commit([put(`after ${systemClock.monotonic()}`)]).then(
        () => true,
        () => false,
      ),
    );
    await assert.rejects(open(url).opening, /in use by the Cloudlet on/);
    assert.deepEqual(told, []);
    await metadata.close();
  });

  test('one that was cut off while another took over stores nothing when it is back', async () => {
    const url = await newDatabase();
    const proxy = await TcpProxy.to(server().port);
    const { opening, alarms, told } = open(Object.assign(new URL(url), { port: String(proxy.port) }).href);
    const old = await opening;
    await old.commit([put('before')]);
    proxy.block();
    const outcome = (name: string) =>
      old.commit([put(name)]).then(
        () => 'stored',
        (error) => error.code,
      );
    const underway = outcome('under way');
    const next = await open(url).opening;
    proxy.unblock();
    // The first batch on a new connection, which does not know the other process yet.
    const soon = await outcome('soon');
    assert.equal(soon, 'read_only');
    const isStored = (await underway) === 'stored';
    const rows = await next.all<{ name: string }>("SELECT name FROM settings WHERE name <> 'before'");
    assert.deepEqual(
      rows.map(({ name }) => name),
      isStored ? ['under way'] : [],
    );
    await eventually(() => Promise.resolve(told.length > 0));
    await assert.rejects(old.commit([put('after')]), { code: 'read_only', message: /Another Cloudlet has/ });
    assert.match(
      told[0] as string,
      new RegExp(`The Cloudlet on ${hostname()}, process ${process.pid}, since`),
    );
    assert.ok(alarms.list().some(({ code }) => code === 'metadata_taken_over'));
    await next.commit([put('next')]);
    await Promise.all([old.close(), next.close()]);
    proxy.close();
  });
});

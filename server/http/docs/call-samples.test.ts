import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../../cloud/edges.ts';
import { bodyCheck } from '../validate.ts';
import { CALL_SAMPLES } from './call-samples.ts';

const routes = declaredRoutes();

test('each sample is of a call, and each call that needs a body has one', () => {
  const names = routes.map(({ name }) => name);
  for (const name of Object.keys(CALL_SAMPLES)) assert.ok(names.includes(name), name);
  for (const { name, body, consumes } of routes) {
    const { required = [] } = (body ?? {}) as { required?: readonly string[] };
    const sample = CALL_SAMPLES[name];
    if (required.length === 0 || sample?.instead !== undefined) continue;
    assert.ok(consumes === 'multipart' ? sample?.form : sample?.body, name);
  }
});

test('each body fits its call and has nothing that the call does not know', () => {
  for (const { name, body, consumes, rules } of routes) {
    const sample = CALL_SAMPLES[name];
    const given = consumes === 'multipart' ? sample?.form : sample?.body;
    if (given === undefined) continue;
    const known = Object.keys((body as { properties?: object } | undefined)?.properties ?? {});
    for (const member of Object.keys(given)) assert.ok(known.includes(member), `${name}: ${member}`);
    if (consumes !== 'multipart') assert.doesNotThrow(() => bodyCheck(body, rules)(given), name);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../config/config.ts';
import { apiCors, apiHeaders, DATA_CORS, dataHeaders } from './origin-rules.ts';

const HSTS = 'strict-transport-security';

test('browsers are told to keep to HTTPS once users come by it, and not at a host of published ports', () => {
  const told = (settings: Readonly<Record<string, string>>) => {
    const config = loadConfig(settings);
    return [apiHeaders(config)[HSTS], dataHeaders(config)[HSTS]];
  };
  const year = 'max-age=31536000';
  assert.deepEqual(told({}), [undefined, undefined]);
  const api = { CLOUDLET_PUBLIC_URL: 'https://cloud.example.org' };
  const data = { CLOUDLET_DATA_URL: 'https://files.example.org' };
  const elsewhere = { CLOUDLET_PUBLISHED_HOST: 'ports.example.org' };
  assert.deepEqual(told({ ...api, ...data, ...elsewhere }), [year, year]);
  assert.deepEqual(told({ ...api, ...elsewhere }), [year, year]);
  const same = { CLOUDLET_PUBLISHED_HOST: 'cloud.example.org', CLOUDLET_PUBLISHED_PORTS: '62100-62999' };
  assert.deepEqual(told({ ...api, ...data, ...same }), ['max-age=0', year]);
});

test('scripts of other origins read the API where the settings name them, and links everywhere', () => {
  assert.equal(apiCors(loadConfig({})), null);
  const origins = ['https://a.example.org', 'https://b.example.org'];
  assert.deepEqual(apiCors(loadConfig({ CLOUDLET_CORS_ORIGINS: origins.join(',') }))?.origins, origins);
  assert.ok(DATA_CORS.methodsAt('/db/db-1/v2/pipeline').includes('POST'));
  assert.ok(!DATA_CORS.methodsAt('/cdn/x').includes('POST'));
});

test('nothing of the data origin runs as script, and pages of others may embed its images', () => {
  const headers = dataHeaders(loadConfig({}));
  assert.match(headers['content-security-policy'] ?? '', /^sandbox; default-src 'none'/);
  assert.equal(headers['cross-origin-resource-policy'], 'cross-origin');
  assert.equal(apiHeaders(loadConfig({}))['cross-origin-resource-policy'], 'same-origin');
});

/** Writes openapi.json: the API as its routes declare it. Run it after changing a route or a schema. */
import { writeFileSync } from 'node:fs';
import { declaredRoutes } from '../server/cloud/edges.ts';
import { openApi, renderOpenApi } from '../server/http/docs/openapi.ts';
import { VERSION } from '../server/platform/version.ts';

const text = renderOpenApi(openApi(declaredRoutes(), { version: VERSION }));
writeFileSync(new URL('../openapi.json', import.meta.url), text);

/** JSON schemas as table rows and as examples, for the docs page. */

export interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly 'x-rule'?: string;
}

export interface Field {
  /** With the names of its parents: `errors[].field`. */
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
}

const MAX_DEPTH = 3;

/** The members of an object, or of the objects in a list, and their nested members. */
export function fieldsOf(schema: Schema, prefix = '', depth = 1): Field[] {
  const inner = insideOf(schema);
  if (depth > MAX_DEPTH || inner.schema.properties === undefined) return [];
  const required = new Set(inner.schema.required);
  return Object.entries(inner.schema.properties).flatMap(([member, each]) => {
    const name = `${prefix}${member}`;
    const row = { name, type: typeOf(each), isRequired: required.has(member), description: describe(each) };
    const step = insideOf(each).isList ? `${name}[].` : `${name}.`;
    return [row, ...fieldsOf(each, step, depth + 1)];
  });
}

/** The object in a list or beside null. */
function insideOf(schema: Schema): { readonly schema: Schema; readonly isList: boolean } {
  if (schema.items !== undefined) return { schema: insideOf(schema.items).schema, isList: true };
  const choice = schema.anyOf?.find(({ properties, items }) => properties ?? items);
  return choice === undefined ? { schema, isList: false } : insideOf(choice);
}

/** The description of a value, with its default. */
export function describe({ description, items, anyOf, default: without, 'x-rule': rule }: Schema): string {
  const inner = items?.description ?? anyOf?.find((each) => each.description)?.description;
  const said = description ?? rule ?? inner ?? '';
  if (without === undefined || without === '') return said;
  return `${said}${said && '. '}Default: ${String(without)}`;
}

/** A type such as `integer 1–1000`, `string or null`. */
export function typeOf(schema: Schema): string {
  const { type, enum: choices, const: only, anyOf, items, minimum, maximum } = schema;
  if (choices !== undefined) return choices.join(' | ');
  if (only !== undefined) return JSON.stringify(only);
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(' or ');
  if (items !== undefined) return `list of ${typeOf(items)}`;
  if (minimum === undefined || maximum === undefined) return type ?? 'any';
  return `${type} ${minimum}–${maximum}`;
}

/** Examples by member name, for schemas without an example of their own. */
const EXAMPLES: Readonly<Record<string, unknown>> = {
  hash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  username: 'ada',
  email: 'ada@example.com',
  plan: 'free',
  region: 'us-east-1',
  account_id: 1,
  api_key: 'clk_a1Ndroa6RB2cXmGQw1bOBdXXBhS8a0vq46qUjO',
  credits: 10,
  is_active: true,
  object_id: 'obj-01kd8vcz1p7m3s5t9w2x4y6z8a',
  version_id: 'ver-01kd8vcz1p7m3s5t9w2x4y6z8b',
  vm_id: 'vm-01kd8vcz1p7m3s5t9w2x4y6z8c',
  operation_id: 'op-01kd8vcz1p7m3s5t9w2x4y6z8d',
  image_id: 'img-01kd8vcz1p7m3s5t9w2x4y6z8e',
  event_id: 'evt-01kd8vcz1p7m3s5t9w2x4y6z8f',
  etag: '926cad4bc1f756c726cb371cdcab6488',
  size: 15,
  size_formatted: '15.00 B',
  mime_type: 'image/jpeg',
  storage_class: 'STANDARD',
  metadata: { camera: 'X100' },
  bucket: 'photos',
  object_count: 1,
  version_count: 1,
  total_size: 15,
  is_latest: true,
  ip_address: '127.80.0.1',
  instance_type: 't2.micro',
  image: 'tiny',
  port: 22,
  guest_port: 22,
  vcpus: 1,
  memory_mb: 1024,
  disk_gb: 8,
  price_per_hour: 0.0116,
  price_per_month: 8.468,
  disk_price_per_hour: 0.0006,
  total_price_per_hour: 0.0122,
  total_price_per_month: 8.906,
  tags: 'web,test',
  accel: 'kvm',
  min_disk_gb: 1,
  uptime_seconds: 60,
  version: '0.1.0',
  cpu: 4.2,
  memory: 31.5,
  disk: 12.8,
  cpu_percent: 3.5,
  memory_percent: 12.1,
  memory_used_mb: 124,
  url: 'https://example.com/cloudlet-events',
  events: ['*'],
  event: 'vm.stopped',
  code: 'failing',
  meter: 'vm.time',
  unit: 'hour',
  unit_price: 0.0116,
  quantity: 2.5,
  cost: 0.029,
  total_cost: 0.029,
  granted: 10,
  used: 0.029,
  balance: 9.971,
  total: 0.029,
  date: '2026-01-31',
  month: '2026-01',
  currency: 'credits',
  duration_ms: 120,
  filename: 'photo.jpg',
  scopes: ['storage:read'],
  state: 'ready',
  access_key_id: 'CLKA1NDROA6RB2CXMGQW',
  status: 'ok',
  reason: 'Welcome',
  type: 'vm.stopped',
  resource_type: 'vm',
  resource_id: 'vm-01kd8vcz1p7m3s5t9w2x4y6z8c',
  ticket: 'b0Jx…',
  enabled: true,
};

/** An example value of a schema; `name`: of the member with this value. */
export function exampleOf(schema: Schema, name = ''): unknown {
  const { examples, const: only, enum: choices, anyOf, items, properties, type } = schema;
  if (examples !== undefined) return examples[0];
  if (only !== undefined) return only;
  if (choices !== undefined) return choices.includes(EXAMPLES[name]) ? EXAMPLES[name] : choices[0];
  if (properties !== undefined) {
    return Object.fromEntries(Object.entries(properties).map(([each, of]) => [each, exampleOf(of, each)]));
  }
  if (items !== undefined) return Array.isArray(EXAMPLES[name]) ? EXAMPLES[name] : [exampleOf(items, name)];
  if (anyOf !== undefined) return exampleOfChoice(anyOf, name);
  const known = EXAMPLES[name];
  if (known !== undefined && (type === undefined || fits(known, type))) return known;
  if (type === 'string')
    return /_(?:at|since|from)$|^(?:at|as_of|from|to|timestamp|since)$/.test(name) ? TIME : '…';
  return EMPTY[type ?? ''] ?? null;
}

const TIME = '2026-01-31 09:30:00';
const EMPTY: Readonly<Record<string, unknown>> = {
  integer: 0,
  number: 0,
  boolean: false,
  array: [],
  object: {},
};

/** null if it is allowed, unless the name gives a better example. */
function exampleOfChoice(anyOf: readonly Schema[], name: string): unknown {
  const mayBeNull = anyOf.some(({ type }) => type === 'null');
  const rest = anyOf.filter(({ type }) => type !== 'null');
  const known = EXAMPLES[name];
  const mayBe = (each: Schema) =>
    each.const === undefined ? fits(known, each.type ?? '') : each.const === known;
  if (known !== undefined && rest.some(mayBe)) return known;
  return mayBeNull ? null : exampleOf(rest[0] ?? {}, name);
}

function fits(value: unknown, type: string): boolean {
  if (Array.isArray(value)) return type === 'array';
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

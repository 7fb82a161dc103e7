/** Lifecycle rules in the XML of S3; object-headers.ts computes expirations. */
import type { IncomingHttpHeaders } from 'node:http';
import {
  child,
  children,
  parseXml,
  S3Error,
  textOf,
  type XmlElement,
  type XmlNode,
  xmlDocument,
} from '../../../libs/s3-wire/index.ts';
import { randomName } from '../../platform/ids.ts';
import { DAY_MS, type Lifecycle, type LifecycleRule } from '../../storage/lifecycle/lifecycle-rules.ts';

/** Limits of the rules, which are read with every request to the bucket. */
export const LIFECYCLE_MAX_BYTES = 512 * 1024;
const MAX_RULES = 1000;
const ID_MAX_LENGTH = 255;
/** Length of a generated rule id. */
const ID_LENGTH = 32;
const MAX_DAYS = 2 ** 31 - 1;
const MAX_NEWER = 100;
const MINIMUM_SIZE = 'x-amz-transition-default-minimum-object-size';
const MINIMUM_SIZES = ['all_storage_classes_128K', 'varies_by_storage_class'] as const;
/** Storage classes of AWS for transitions. */
const CLASSES = ['STANDARD_IA', 'ONEZONE_IA', 'INTELLIGENT_TIERING', 'GLACIER', 'GLACIER_IR', 'DEEP_ARCHIVE'];
const CONDITIONS = ['Prefix', 'Tag', 'ObjectSizeGreaterThan', 'ObjectSizeLessThan', 'And'];

function invalid(message: string): S3Error {
  return new S3Error('InvalidArgument', message);
}

function unfit(message: string): S3Error {
  return new S3Error('InvalidRequest', message);
}

/** Throws S3Error MalformedXML, InvalidArgument, InvalidRequest, NotImplemented. */
export function readLifecycle(body: Buffer, headers: IncomingHttpHeaders = {}): Lifecycle {
  const root = parseXml(body, LIFECYCLE_MAX_BYTES);
  const elements = children(root, 'Rule');
  const isNamed = ['LifecycleConfiguration', 'BucketLifecycleConfiguration'].includes(root.name);
  if (!isNamed || elements.length === 0 || elements.length > MAX_RULES) throw new S3Error('MalformedXML');
  const rules = elements.map(readRule);
  if (new Set(rules.map(({ id }) => id)).size < rules.length) {
    throw invalid('Rule ID must be unique. Found same ID for more than one rule');
  }
  const minimumSize = headers[MINIMUM_SIZE]?.toString();
  if (minimumSize === undefined) return { rules };
  if (!MINIMUM_SIZES.some((each) => each === minimumSize)) {
    throw invalid(`Invalid value for ${MINIMUM_SIZE}`);
  }
  return { rules, minimumSize };
}

function readRule(rule: XmlElement): LifecycleRule {
  const id = textOf(rule, 'ID') ?? '';
  if (id.length > ID_MAX_LENGTH) {
    throw invalid(`ID length should not exceed allowed limit of ${ID_MAX_LENGTH}`);
  }
  const status = textOf(rule, 'Status');
  if (status !== 'Enabled' && status !== 'Disabled') throw new S3Error('MalformedXML');
  const transitions = [...children(rule, 'Transition'), ...children(rule, 'NoncurrentVersionTransition')];
  for (const transition of transitions) assertTransition(transition);
  if (transitions.length > 0) {
    throw new S3Error('NotImplemented', 'Transitions are not offered here: there is one storage class');
  }
  const filter = readFilter(rule);
  const actions = {
    ...readExpiration(child(rule, 'Expiration')),
    ...readNoncurrent(child(rule, 'NoncurrentVersionExpiration')),
    ...readAbort(child(rule, 'AbortIncompleteMultipartUpload')),
  };
  if (Object.keys(actions).length === 0) {
    throw unfit('At least one action needs to be specified in a rule');
  }
  assertFits(filter, actions);
  return {
    id: id === '' ? randomName(ID_LENGTH) : id,
    isEnabled: status === 'Enabled',
    ...filter,
    ...actions,
  };
}

type Conditions = Pick<LifecycleRule, 'form' | 'prefix' | 'tags' | 'largerThan' | 'smallerThan'>;
type Actions = Partial<LifecycleRule>;

function readFilter(rule: XmlElement): Conditions {
  const [prefix, filter] = [textOf(rule, 'Prefix'), child(rule, 'Filter')];
  if ((prefix === undefined) === (filter === undefined)) throw new S3Error('MalformedXML');
  if (filter === undefined) return { form: 'prefix', prefix: prefix ?? '' };
  const isKnown = filter.children.every(({ name }) => CONDITIONS.includes(name));
  const and = child(filter, 'And');
  const isMany = filter.children.length > 1;
  if (!isKnown || (and !== undefined && isMany)) throw new S3Error('MalformedXML');
  // Old clients leave out `And`.
  return { form: and !== undefined || isMany ? 'and' : 'filter', ...readConditions(and ?? filter) };
}

function readConditions(element: XmlElement): Omit<Conditions, 'form'> {
  const pairs = children(element, 'Tag').map((tag) => {
    const [name, value] = [textOf(tag, 'Key'), textOf(tag, 'Value')];
    if (name === undefined || value === undefined) throw new S3Error('MalformedXML');
    if (name === '' || name.length > 128 || value.length > 256) throw new S3Error('InvalidTag');
    return [name, value] as const;
  });
  const tags = Object.fromEntries(pairs);
  if (Object.keys(tags).length < pairs.length) throw unfit('Duplicate Tag Keys are not allowed.');
  const prefix = textOf(element, 'Prefix');
  const largerThan = numberOf(element, 'ObjectSizeGreaterThan', { min: 0 });
  const smallerThan = numberOf(element, 'ObjectSizeLessThan', { min: 1 });
  if (largerThan !== undefined && smallerThan !== undefined && smallerThan <= largerThan) {
    throw unfit("'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.");
  }
  return {
    ...(prefix !== undefined && { prefix }),
    ...(pairs.length > 0 && { tags }),
    ...(largerThan !== undefined && { largerThan }),
    ...(smallerThan !== undefined && { smallerThan }),
  };
}

/** Throws S3Error MalformedXML if not a number, InvalidArgument if out of range. */
function numberOf(
  element: XmlElement,
  name: string,
  { min, max = Number.MAX_SAFE_INTEGER, in: action = '' }: { min: number; max?: number; in?: string },
): number | undefined {
  const text = textOf(element, name);
  if (text === undefined) return undefined;
  if (!/^-?\d{1,19}$/.test(text.trim())) throw new S3Error('MalformedXML');
  const value = Number(text);
  if (value >= min && value <= max) return value;
  const what = action === '' ? `'${name}'` : `'${name}' for ${action} action`;
  throw invalid(`${what} must be a positive integer`);
}

function readExpiration(element: XmlElement | undefined): Actions {
  if (element === undefined) return {};
  const days = numberOf(element, 'Days', { min: 1, max: MAX_DAYS, in: 'Expiration' });
  const [date, markers] = [textOf(element, 'Date'), textOf(element, 'ExpiredObjectDeleteMarker')];
  const given = [days, date, markers].filter((each) => each !== undefined);
  if (given.length !== 1) throw new S3Error('MalformedXML');
  if (days !== undefined) return { days };
  if (date !== undefined) return { date: midnight(date) };
  if (markers !== 'true' && markers !== 'false') throw new S3Error('MalformedXML');
  return { expiresMarkers: markers === 'true' };
}

/** Throws S3Error MalformedXML, InvalidArgument: errors take precedence over missing support. */
function assertTransition(element: XmlElement): void {
  const days = numberOf(element, 'Days', { min: 0, max: MAX_DAYS, in: 'Transition' });
  const noncurrent = numberOf(element, 'NoncurrentDays', { min: 0, max: MAX_DAYS, in: element.name });
  const date = textOf(element, 'Date');
  if (date !== undefined) midnight(date);
  const given = [days, noncurrent, date].filter((each) => each !== undefined);
  const storageClass = textOf(element, 'StorageClass') ?? '';
  if (given.length !== 1 || !CLASSES.includes(storageClass)) throw new S3Error('MalformedXML');
}

function midnight(text: string): number {
  const isIso = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d))?$/.test(text);
  const at = isIso ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw new S3Error('MalformedXML');
  if (at % DAY_MS === 0) return at;
  throw invalid("'Date' must be at midnight GMT");
}

function readNoncurrent(element: XmlElement | undefined): Actions {
  if (element === undefined) return {};
  const action = 'NoncurrentVersionExpiration';
  const days = numberOf(element, 'NoncurrentDays', { min: 1, max: MAX_DAYS, in: action });
  const newer = numberOf(element, 'NewerNoncurrentVersions', { min: 1, max: MAX_NEWER, in: action });
  if (days === undefined) throw new S3Error('MalformedXML');
  return { noncurrentDays: days, ...(newer !== undefined && { newerNoncurrent: newer }) };
}

function readAbort(element: XmlElement | undefined): Actions {
  if (element === undefined) return {};
  const action = 'AbortIncompleteMultipartUpload';
  const abortDays = numberOf(element, 'DaysAfterInitiation', { min: 1, max: MAX_DAYS, in: action });
  if (abortDays === undefined) throw new S3Error('MalformedXML');
  return { abortDays };
}

/** Uploads and markers have neither tags nor a size. */
function assertFits(filter: Conditions, { abortDays, expiresMarkers }: Actions): void {
  const bare = [
    ...(abortDays === undefined ? [] : ['AbortIncompleteMultipartUpload']),
    ...(expiresMarkers === undefined ? [] : ['ExpiredObjectDeleteMarker']),
  ];
  for (const action of bare) {
    if (filter.tags !== undefined) throw unfit(`${action} cannot be specified with Tags.`);
    if (filter.largerThan !== undefined || filter.smallerThan !== undefined) {
      throw unfit(`${action} cannot be specified with object size filters.`);
    }
  }
}

export function lifecycleDocument({ rules }: Lifecycle): string {
  return xmlDocument(
    'LifecycleConfiguration',
    rules.map((rule) => ['Rule', written(rule)] as const),
  );
}

function written(rule: LifecycleRule): XmlNode {
  const { id, form, prefix, isEnabled, days, date, expiresMarkers, noncurrentDays, abortDays } = rule;
  const expires = days ?? date ?? expiresMarkers;
  return [
    ['ID', id],
    form === 'prefix' ? ['Prefix', prefix] : ['Filter', conditions(rule)],
    ['Status', isEnabled ? 'Enabled' : 'Disabled'],
    expires === undefined
      ? undefined
      : [
          'Expiration',
          [
            ['Days', days],
            ['Date', date === undefined ? undefined : dateText(date)],
            ['ExpiredObjectDeleteMarker', expiresMarkers],
          ],
        ],
    noncurrentDays === undefined
      ? undefined
      : [
          'NoncurrentVersionExpiration',
          [
            ['NoncurrentDays', noncurrentDays],
            ['NewerNoncurrentVersions', rule.newerNoncurrent],
          ],
        ],
    abortDays === undefined
      ? undefined
      : ['AbortIncompleteMultipartUpload', [['DaysAfterInitiation', abortDays]]],
  ];
}

/** Empty for no date, which is refused when it is read. */
function dateText(date: number): string {
  return Number.isNaN(date) ? '' : new Date(date).toISOString();
}

function conditions({ form, prefix, tags = {}, largerThan, smallerThan }: Conditions): XmlNode {
  const listed: XmlNode = [
    ['Prefix', prefix],
    ...Object.entries(tags).map(
      ([Key, Value]) =>
        [
          'Tag',
          [
            ['Key', Key],
            ['Value', Value],
          ],
        ] as const,
    ),
    ['ObjectSizeGreaterThan', largerThan],
    ['ObjectSizeLessThan', smallerThan],
  ];
  return form === 'and' ? [['And', listed]] : listed;
}

export function lifecycleHeaders({ minimumSize = MINIMUM_SIZES[0] }: Lifecycle): Record<string, string> {
  return { [MINIMUM_SIZE]: minimumSize };
}

/**
 * Lifecycle rules as pure functions: which objects a rule covers, and when they expire. Times are
 * those of the wall clock; a day ends at midnight UTC, as with AWS.
 */

/** One rule. A number of days counts from creation, or from the day on which a version was replaced. */
export interface LifecycleRule {
  readonly id: string;
  readonly isEnabled: boolean;
  /**
   * The form in which the client specified the objects: an old Prefix, a Filter with at most one
   * condition, or with several.
   */
  readonly form: 'prefix' | 'filter' | 'and';
  readonly prefix?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly largerThan?: number;
  readonly smallerThan?: number;
  readonly days?: number;
  /** ms since 1970, a midnight. */
  readonly date?: number;
  /** Removes delete markers that hide nothing. */
  readonly expiresMarkers?: boolean;
  readonly noncurrentDays?: number;
  /** Number of newest older versions to keep. */
  readonly newerNoncurrent?: number;
  readonly abortDays?: number;
}

export interface Lifecycle {
  readonly rules: readonly LifecycleRule[];
  /** AWS' `x-amz-transition-default-minimum-object-size`: stored and shown, without effect. */
  readonly minimumSize?: string;
}

/** Length of a day. Shorter ones are for tests, and do not end at midnight. */
export interface DayLength {
  readonly dayMs: number;
}

export const DAY_MS = 24 * 3_600_000;
export const REAL_DAYS: DayLength = { dayMs: DAY_MS };

/** An object as seen by filters. */
export interface Filtered {
  readonly name: string;
  readonly size_bytes: number;
  /** JSON object; null: none. */
  readonly tags: string | null;
  readonly created_at: number;
}

/** When an object expires, and the rule for it. */
export interface Expiry {
  readonly at: number;
  readonly ruleId: string;
}

function afterDays(from: number, days: number, { dayMs }: DayLength): number {
  const at = from + days * dayMs;
  return dayMs === DAY_MS ? Math.ceil(at / DAY_MS) * DAY_MS : at;
}

/** The last parsed tags: all rules of a bucket check the same object in turn. */
let lastTags: { readonly text: string; readonly tags: Readonly<Record<string, string>> } | undefined;

function tagsOf(text: string): Readonly<Record<string, string>> {
  if (lastTags?.text !== text) lastTags = { text, tags: JSON.parse(text) };
  return lastTags.tags;
}

function covers(rule: LifecycleRule, object: Omit<Filtered, 'created_at'>): boolean {
  const { isEnabled, prefix = '', tags = {}, largerThan = -1, smallerThan = Number.POSITIVE_INFINITY } = rule;
  if (!isEnabled || !object.name.startsWith(prefix)) return false;
  if (object.size_bytes <= largerThan || object.size_bytes >= smallerThan) return false;
  const wanted = Object.entries(tags);
  if (wanted.length === 0) return true;
  const own = object.tags === null ? {} : tagsOf(object.tags);
  return wanted.every(([name, value]) => own[name] === value);
}

function earliest(found: readonly (Expiry | undefined)[]): Expiry | undefined {
  return found.reduce((first, each) => (each && (!first || each.at < first.at) ? each : first), undefined);
}

/** When the current version of an object expires. */
export function currentExpiry(
  { rules }: Lifecycle,
  object: Filtered,
  length: DayLength = REAL_DAYS,
): Expiry | undefined {
  return earliest(
    rules.map((rule) => {
      const at = rule.days === undefined ? rule.date : afterDays(object.created_at, rule.days, length);
      return at !== undefined && covers(rule, object) ? { at, ruleId: rule.id } : undefined;
    }),
  );
}

/** When an older version expires that was replaced at `since` and has `newer` older versions before it. */
export function noncurrentExpiry(
  { rules }: Lifecycle,
  object: Filtered & { readonly since: number; readonly newer: number },
  length: DayLength,
): Expiry | undefined {
  return earliest(
    rules.map((rule) => {
      const { noncurrentDays, newerNoncurrent = 0 } = rule;
      if (noncurrentDays === undefined || object.newer < newerNoncurrent) return undefined;
      const at = afterDays(object.since, noncurrentDays, length);
      return covers(rule, object) ? { at, ruleId: rule.id } : undefined;
    }),
  );
}

/** When a delete marker that hides nothing expires: at once, or at the age at which objects expire. */
export function markerExpiry(
  { rules }: Lifecycle,
  marker: Pick<Filtered, 'name' | 'created_at'>,
  length: DayLength,
): Expiry | undefined {
  const bare = { name: marker.name, size_bytes: 0, tags: null };
  return earliest(
    rules.map((rule) => {
      const { expiresMarkers = false, days, largerThan, smallerThan } = rule;
      const isSized = largerThan !== undefined || smallerThan !== undefined;
      if (isSized || !covers(rule, bare)) return undefined;
      if (expiresMarkers) return { at: marker.created_at, ruleId: rule.id };
      return days === undefined
        ? undefined
        : { at: afterDays(marker.created_at, days, length), ruleId: rule.id };
    }),
  );
}

/** When an incomplete multipart upload expires. */
export function uploadExpiry(
  { rules }: Lifecycle,
  upload: Pick<Filtered, 'name' | 'created_at'>,
  length: DayLength = REAL_DAYS,
): Expiry | undefined {
  return earliest(
    rules.map(({ id, isEnabled, prefix = '', abortDays }) => {
      if (abortDays === undefined || !isEnabled || !upload.name.startsWith(prefix)) return undefined;
      return { at: afterDays(upload.created_at, abortDays, length), ruleId: id };
    }),
  );
}

/**
 * The prefixes under which enabled rules remove objects, in order of name and without overlaps;
 * empty: no rule does.
 */
export function coveredPrefixes({ rules }: Lifecycle): string[] {
  const prefixes = rules
    .filter(({ isEnabled, days, date, expiresMarkers, noncurrentDays }) => {
      const removes = days ?? date ?? noncurrentDays;
      return isEnabled && (removes !== undefined || expiresMarkers === true);
    })
    .map(({ prefix = '' }) => ({ prefix, bytes: Buffer.from(prefix) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  const covered: string[] = [];
  // In sorted order, longer prefixes follow the shorter prefix that covers them.
  for (const { prefix } of prefixes) {
    const last = covered.at(-1);
    if (last === undefined || !prefix.startsWith(last)) covered.push(prefix);
  }
  return covered;
}

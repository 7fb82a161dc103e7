/** The meters: what is measured and charged. */

export type MeterName = 'vm.time' | 'vm.disk' | 'storage' | 'egress' | 'database.storage';

/** Charges are booked to `system:revenue-<service>`. */
export const SERVICES = ['compute', 'storage', 'egress', 'databases'] as const;
export type Service = (typeof SERVICES)[number];

export interface Meter {
  readonly name: MeterName;
  readonly service: Service;
  /** The type of its resources, in reports; see resourceTypeOf(). */
  readonly resourceType: 'vm' | 'bucket' | 'database';
  /** The unit of a price. */
  readonly unit: 'hour' | 'GB-hour' | 'GB';
  /** Length of a tick of its lines, ms: the finest that keeps hours of a petabyte inside 64 bits. */
  readonly tickMs: number;
  /** Quantity of a line (level × ticks; for egress bytes) per unit. */
  readonly perUnit: bigint;
}

const HOUR_MS = 3_600_000;
const GIB = 2n ** 30n;

export const METERS: Readonly<Record<MeterName, Meter>> = {
  // Level: 1 while it runs.
  'vm.time': {
    name: 'vm.time',
    service: 'compute',
    resourceType: 'vm',
    unit: 'hour',
    tickMs: 1,
    perUnit: BigInt(HOUR_MS),
  },
  // Level: GB of its disk, while it exists.
  'vm.disk': {
    name: 'vm.disk',
    service: 'compute',
    resourceType: 'vm',
    unit: 'GB-hour',
    tickMs: 1,
    perUnit: BigInt(HOUR_MS),
  },
  // Level: bytes of all versions.
  storage: {
    name: 'storage',
    service: 'storage',
    resourceType: 'bucket',
    unit: 'GB-hour',
    tickMs: 1000,
    perUnit: GIB * 3600n,
  },
  // A counter, not a level: sent bytes are added up.
  egress: {
    name: 'egress',
    service: 'egress',
    resourceType: 'bucket',
    unit: 'GB',
    tickMs: 1000,
    perUnit: GIB,
  },
  // Level: size of the database in bytes, as last measured.
  'database.storage': {
    name: 'database.storage',
    service: 'databases',
    resourceType: 'database',
    unit: 'GB-hour',
    tickMs: 1000,
    perUnit: GIB * 3600n,
  },
};

/** The field that a price depends on; null: one price for all. */
export const PRICED_BY: Readonly<Record<Meter['resourceType'], 'instance_type' | 'engine' | null>> = {
  vm: 'instance_type',
  bucket: null,
  database: 'engine',
};

/** The type of a line's resource: databases and machines have egress lines too, by their ids. */
export function resourceTypeOf(meter: MeterName, resourceId: string): Meter['resourceType'] {
  if (meter === 'egress' && resourceId.startsWith('db-')) return 'database';
  return meter === 'egress' && resourceId.startsWith('vm-') ? 'vm' : METERS[meter].resourceType;
}

export const METER_NAMES = Object.keys(METERS) as readonly MeterName[];

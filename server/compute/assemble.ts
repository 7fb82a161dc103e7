/** All of compute, put together on an engine and a front: by the composition root, and by tests. */

import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AccountStops } from './account-stops.ts';
import { Actions } from './actions.ts';
import type { AddressPool } from './addresses.ts';
import { Exposures, type ExposuresDeps } from './exposures.ts';
import type { Front } from './front.ts';
import type { Hypervisor } from './hypervisor.ts';
import { ImageImports } from './image-imports.ts';
import type { ImageSources } from './image-sources.ts';
import { ImageStore } from './image-store.ts';
import { Images } from './images.ts';
import { Lifecycle } from './lifecycle.ts';
import { Machines, type OpenFiles } from './machines.ts';
import { Power } from './power.ts';
import { Recovery } from './reconcile.ts';
import { Removal } from './removal.ts';
import { Runs } from './runs.ts';
import type { VmStore } from './store.ts';
import { Supervisor } from './supervisor.ts';
import { VmAnswers } from './vm-answer.ts';
import type { VmBilling } from './vm-billing.ts';
import type { Announce } from './vm-events.ts';

export interface ComputeParts {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly store: VmStore;
  readonly hypervisor: Hypervisor;
  readonly front: Front;
  readonly addresses: AddressPool;
  readonly imageSources: ImageSources;
  readonly billing: VmBilling;
  readonly announce: Announce;
  /** Throws when so many bytes more must not be stored. */
  readonly assertRoom: (bytes: number) => void;
  readonly report: (id: string, what: string, error: unknown) => void;
  readonly onClosedPorts: ExposuresDeps['onClosedPorts'];
  readonly descriptors: OpenFiles;
  readonly outbound: boolean;
  readonly maxImageBytes: number;
  /** ms. */
  readonly graceMs: number;
  readonly orphanGraceMs: number;
}

/** Makes the parts; nothing runs until `supervisor.start()`. */
export function assembleCompute(given: ComputeParts) {
  const { metadata } = given;
  const changes = new Changes({ metadata });
  const imageStore = new ImageStore(metadata);
  const images = new Images({ store: imageStore });
  const { imageSources: sources, maxImageBytes: maxBytes } = given;
  const imports = new ImageImports({ ...given, changes, store: imageStore, sources, maxBytes });
  const exposures = new Exposures({ ...given, changes });
  const base = { ...given, changes, images, exposures, answers: new VmAnswers(given) };
  const machines = new Machines(base);
  const actions = new Actions();
  const lifecycle = new Lifecycle(base);
  const runs = new Runs({ ...base, lifecycle });
  const parts = { ...base, machines, actions, lifecycle, runs };
  const power = new Power(parts);
  const removal = new Removal(parts);
  const recovery = new Recovery({ ...parts, removal });
  const supervisor = new Supervisor({ ...parts, recovery });
  const accountStops = new AccountStops({ ...parts, power, removal });
  return {
    images,
    imports,
    machines,
    actions,
    lifecycle,
    runs,
    exposures,
    power,
    removal,
    recovery,
    supervisor,
    accountStops,
    addresses: given.addresses,
    billing: given.billing,
  };
}

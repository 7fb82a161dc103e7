/** All of compute, put together on an engine and a front: by the composition root, and by tests. */
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import type { Hypervisor } from './hypervisor.ts';
import { ImageImports } from './images/image-imports.ts';
import type { ImageSources } from './images/image-sources.ts';
import { ImageStore } from './images/image-store.ts';
import { Images } from './images/images.ts';
import type { Front } from './ingress.ts';
import { AccountStops } from './machines/account-stops.ts';
import { Actions } from './machines/actions.ts';
import type { AddressPool } from './machines/addresses.ts';
import { Exposures, type ExposuresDeps } from './machines/exposures.ts';
import { Lifecycle } from './machines/lifecycle.ts';
import { Machines, type OpenFiles } from './machines/machines.ts';
import { Power } from './machines/power.ts';
import { Recovery } from './machines/reconcile.ts';
import { Removal } from './machines/removal.ts';
import { Runs } from './machines/runs.ts';
import { Supervisor } from './machines/supervisor.ts';
import { VmAnswers } from './machines/vm-answer.ts';
import type { VmBilling } from './machines/vm-billing.ts';
import type { Announce } from './machines/vm-events.ts';
import type { VmStore } from './machines/vm-store.ts';

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

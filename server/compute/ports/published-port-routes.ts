/** Published ports of a machine over REST. */
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { VmPath } from '../schema.ts';
import type { PublishedPorts } from './published-ports.ts';
import { DeletedPublishedPort, NewPublishedPort, PublishedPort } from './published-ports-schema.ts';

export interface PublishedPortRoutesDeps {
  readonly published: PublishedPorts;
}

const PORTS = '/api/vms/{vm_id}/ports';

export function publishedPortRoutes({ published }: PublishedPortRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: PORTS,
      name: 'publishVmPort',
      audit: { detail: ['port'] },
      livesOn: 'host',
      tag: 'compute',
      summary: 'Publish a TCP port of a virtual machine',
      description:
        'On a port of this host, or for HTTP under a host name. Everyone who can reach this host can connect while ' +
        'the machine runs. The port is removed with the machine, and its traffic counts as egress. When no port is ' +
        'free, one of a machine that has not run for 24 hours is reassigned: that machine gets its old port, if ' +
        'free, or another one at its next start (`vm.port_changed`).',
      permission: 'compute:write',
      params: VmPath,
      body: NewPublishedPort,
      responses: { 201: PublishedPort },
      errors: ['vm_not_found', 'port_taken', 'too_many_ports', 'no_free_port'],
      handler: (call) => published.publish(call, call.params.vm_id, call.body),
    }),
    defineRoute({
      method: 'GET',
      path: PORTS,
      name: 'listVmPorts',
      livesOn: 'host-or-any',
      tag: 'compute',
      summary: 'List the published ports of a virtual machine',
      permission: 'compute:read',
      params: VmPath,
      responses: { 200: Type.Array(PublishedPort) },
      errors: ['vm_not_found'],
      handler: ({ principal, params }) => published.list(principal, params.vm_id),
    }),
    defineRoute({
      method: 'DELETE',
      path: `${PORTS}/{port_id}`,
      name: 'unpublishVmPort',
      livesOn: 'host',
      tag: 'compute',
      summary: 'Stop publishing a port of a virtual machine',
      permission: 'compute:write',
      params: Type.Object({ ...VmPath.properties, port_id: Type.String({ $id: 'PortId' }) }),
      responses: { 200: DeletedPublishedPort },
      errors: ['vm_not_found', 'port_not_found'],
      handler: (call) => published.withdraw(call, call.params.vm_id, call.params.port_id),
    }),
  ];
}

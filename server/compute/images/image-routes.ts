/** Images over REST. */
import { readForm } from '../../http/bodies/multipart.ts';
import { defineRoute, type Route, type RouteInput } from '../../http/route.ts';
import { unknownFields } from '../../http/validate.ts';
import { Type } from '../../platform/json/json-schema.ts';
import {
  AdminImage,
  DeletedImage,
  Image,
  ImageForm,
  ImagePath,
  KnownImageEntry,
  KnownImagePath,
  NewImage,
} from '../schema.ts';
import type { ImageImports } from './image-imports.ts';
import type { Images } from './images.ts';

export interface ImageRoutesDeps {
  readonly images: Images;
  readonly imports: ImageImports;
}

const ADMIN = '/api/admin/images';

export function imageRoutes(deps: ImageRoutesDeps): Route[] {
  return [...readRoutes(deps), ...changeRoutes(deps), fetchRoute(deps)];
}

function readRoutes({ images }: ImageRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/images',
      name: 'listImages',
      tag: 'compute',
      summary: 'List available images',
      permission: 'compute:read',
      responses: { 200: Type.Array(Image) },
      handler: () => images.list(),
    }),
    defineRoute({
      method: 'GET',
      path: ADMIN,
      name: 'adminListImages',
      tag: 'admin',
      summary: 'List imported images with their state, oldest first',
      permission: 'admin:read',
      responses: { 200: Type.Array(AdminImage) },
      handler: () => images.listAll(),
    }),
    defineRoute({
      method: 'GET',
      path: `${ADMIN}/known`,
      name: 'adminListKnownImages',
      tag: 'admin',
      summary: 'List the images that can be downloaded by name, with their latest download',
      permission: 'admin:read',
      responses: { 200: Type.Array(KnownImageEntry) },
      handler: () => images.listKnown(),
    }),
  ];
}

function fetchRoute({ imports }: ImageRoutesDeps): Route {
  return defineRoute({
    method: 'POST',
    path: `${ADMIN}/known/{short_name}`,
    name: 'adminFetchImage',
    livesOn: 'host',
    tag: 'admin',
    summary: 'Download an image by name from its publisher',
    description:
      'Responds immediately; `progress` shows the progress of the download. The image can be used once its state is ' +
      '`ready`: its checksum then matches that of the publisher. Images are downloaded one at a time, and a download continues after ' +
      'a restart. Deleting the image cancels.',
    permission: 'admin',
    params: KnownImagePath,
    responses: { 201: AdminImage },
    errors: ['image_not_found', 'image_not_ready', 'shutting_down', 'out_of_space', 'read_only'],
    handler: (call) => imports.fetch(call, call.params.short_name),
  });
}

function changeRoutes({ imports }: ImageRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: ADMIN,
      name: 'adminAddImage',
      livesOn: 'host',
      tag: 'admin',
      summary: 'Import an image from a path or a URL',
      description:
        'A qcow2 or raw disk with its own boot loader. Responds immediately; the image can be used once its state is `ready`.',
      permission: 'admin',
      body: NewImage,
      responses: { 201: AdminImage },
      errors: ['payload_too_large', 'shutting_down', 'out_of_space', 'read_only'],
      handler: (call) => imports.add(call, call.body),
    }),
    defineRoute({
      method: 'POST',
      path: `${ADMIN}/upload`,
      name: 'adminUploadImage',
      livesOn: 'host',
      tag: 'admin',
      summary: 'Upload an image',
      description:
        'A qcow2 or raw disk with its own boot loader. The image can be used once its state is `ready`.',
      permission: 'admin',
      consumes: 'multipart',
      body: ImageForm,
      responses: { 201: AdminImage },
      errors: [
        ...(['invalid_multipart', 'payload_too_large', 'out_of_space', 'read_only'] as const),
        ...(['engine_unavailable', 'shutting_down'] as const),
      ],
      handler: (input) => receive(imports, input),
    }),
    defineRoute({
      method: 'DELETE',
      path: `${ADMIN}/{image_id}`,
      name: 'adminDeleteImage',
      livesOn: 'host',
      tag: 'admin',
      summary: 'Delete an unused image',
      permission: 'admin',
      params: ImagePath,
      responses: { 200: DeletedImage },
      errors: ['image_not_found', 'image_in_use', 'out_of_space', 'read_only'],
      handler: (call) => imports.delete(call, call.params.image_id),
    }),
  ];
}

/** Stages the file part of the request; leaves nothing behind on failure. */
async function receive(imports: ImageImports, input: RouteInput<unknown, unknown, unknown>) {
  const { request, identify } = input;
  const stage = await imports.beginUpload();
  try {
    const { fields, file } = await readForm(request.raw, stage);
    unknownFields(request, fields.keys(), ImageForm);
    const name = fields.get('name') ?? file?.fileName ?? '';
    const sha256 = fields.get('sha256');
    identify([name, sha256, stage.bytes, stage.sum('sha256')]);
    return await imports.finishUpload(input, stage, { name, sha256 });
  } catch (error) {
    await imports.abortUpload(stage);
    throw error;
  }
}

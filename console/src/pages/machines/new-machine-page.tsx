/** The form for a new machine; image, size and name are enough. */

import { Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Image, InstanceType } from '../../../../sdk/index.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { TooFewCredits } from '../../parts/credit-warning.tsx';
import { Choices } from '../../parts/forms/choices.tsx';
import { SubmitBar } from '../../parts/forms/submit-bar.tsx';
import { Refused, Warning } from '../../parts/forms/warning.tsx';
import { Loaded, Page } from '../../parts/page.tsx';
import { QuoteLine } from '../../parts/quote-line.tsx';
import { sayBytes, sayCredits, sayWhole } from '../../parts/say.ts';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { statusQuery, useIsAdmin } from '../../queries.ts';
import { machineText } from '../../texts/machine-text.ts';
import { text } from '../../texts/text.ts';
import { arePorts, bodyOf, type MachineForm, MachineMore, useMachineForm } from './machine-form.tsx';
import { imagesQuery, typesQuery } from './queries.ts';

const words = text.machines;
const GIB_MB = 1024;

export function NewMachinePage() {
  const types = useQuery(typesQuery);
  const images = useQuery(imagesQuery);
  return (
    <Page
      title={words.create}
      lead={machineText.form.lead}
      trail={<AnchorLink to="/machines">{words.title}</AnchorLink>}
    >
      <Host />
      <Loaded query={images}>
        {(ofImages) => (
          <Loaded query={types}>{(ofTypes) => <Form images={ofImages} types={ofTypes} />}</Loaded>
        )}
      </Loaded>
    </Page>
  );
}

/** A warning when machines cannot run on this host or run slowly, with the reason and the fix. */
function Host() {
  const { data } = useQuery(statusQuery);
  const isAdmin = useIsAdmin();
  if (data === undefined) return null;
  const { status, problem, fix, accel, accel_reason, preparing } = data.components.compute;
  if (preparing !== null) return <Text c="dimmed">{machineText.form.preparing(preparing)}</Text>;
  if (status === 'unavailable') {
    return (
      <Warning title={machineText.form.cannotRun}>
        {isAdmin ? `${problem} ${fix}` : machineText.form.cannotRunLead}
      </Warning>
    );
  }
  if (accel !== 'tcg') return null;
  return (
    <Text c="dimmed">{isAdmin ? machineText.form.emulatedWhy(accel_reason) : machineText.form.emulated}</Text>
  );
}

interface FormProps {
  readonly images: readonly Image[];
  readonly types: readonly InstanceType[];
}

function Form({ images, types }: FormProps) {
  const form = useMachineForm();
  const fields = form.values;
  const type = types.find(({ instance_type }) => instance_type === fields.instance_type);
  const body = bodyOf(fields);
  return (
    <form
      onSubmit={(event) => {
        if (arePorts(fields.ports)) form.submit(event);
        else event.preventDefault();
      }}
    >
      <Stack gap="xl">
        <TextInput
          label={words.name}
          maw={420}
          required
          withAsterisk={false}
          data-autofocus
          spellCheck={false}
          {...form.text('name')}
        />
        <Choices label={machineText.form.image} options={images.map(imageChoice)} {...form.of('image')} />
        <Sizes images={images} types={types} form={form} />
        <MachineMore form={form} />
        <Refused {...form.refusal} />
        <SubmitBar
          notice={
            <TooFewCredits
              needed={fields.isStarted ? (type?.price_per_hour ?? 0) : 0}
              wayOut={machineText.form.startLater}
            />
          }
        >
          <div>
            <Price type={type} />
            {type !== undefined && (
              <QuoteLine of={{ resource_type: 'vm', instance_type: type.instance_type }} hasPrice={false} />
            )}
          </div>
          <Group>
            <Checkbox label={machineText.form.startNow} {...form.check('isStarted')} />
            <Button type="submit" loading={form.isBusy}>
              {fields.isStarted ? machineText.form.submitStart : machineText.form.submit}
            </Button>
          </Group>
        </SubmitBar>
        <CallSample operation="createVm" args={[body]} />
      </Stack>
    </form>
  );
}

const wordOf = ({ short_name, image_id }: Image) => short_name ?? image_id;

function imageChoice(image: Image) {
  const { name, is_builtin, size, min_disk_gb, login_user: user, cloud_init } = image;
  const notes = is_builtin ? [machineText.form.imageTiny] : [machineText.form.imageDisk(min_disk_gb)];
  if (size !== null) notes.push(sayBytes(size));
  if (user !== null && !is_builtin) notes.push(machineText.form.imageLogin(user));
  if (cloud_init === true) notes.push(machineText.form.imageCloudInit);
  return { value: wordOf(image), title: name, isMarked: true, notes };
}

interface SizesProps extends FormProps {
  readonly form: MachineForm;
}

function Sizes({ images, types, form }: SizesProps) {
  const needed = images.find((image) => wordOf(image) === form.values.image)?.min_disk_gb ?? 1;
  return (
    <Choices
      label={machineText.form.size}
      description={machineText.form.sizeLead}
      {...form.of('instance_type')}
      options={types.map((type) => {
        const problem = type.disk_gb < needed ? machineText.form.imageTooBig(needed) : type.reason;
        return {
          value: type.instance_type,
          title: type.instance_type,
          isDisabled: problem !== null,
          notes: [
            words.specs(type.vcpus, sayWhole(type.memory_mb), sayWhole(type.disk_gb * GIB_MB)),
            problem ?? <b key="price">{sayRates(type)}</b>,
            ...diskNotes(type),
          ],
        };
      })}
    />
  );
}

/** The price while it runs; `say` formats the first amount. */
function sayRates(type: InstanceType, say: (amount: string) => string = (amount) => amount): string {
  if (type.total_price_per_hour === 0) return text.billing.free;
  const month = words.perMonth(say(sayCredits(type.total_price_per_month)));
  return `${month} · ${words.perHour(sayCredits(type.total_price_per_hour))}`;
}

/** The part of the price that is charged while the machine is stopped. */
function diskNotes({ disk_price_per_hour: price }: InstanceType): readonly string[] {
  return price === 0 ? [] : [words.diskPrice(sayCredits(price))];
}

function Price({ type }: { type: InstanceType | undefined }) {
  if (type === undefined) return null;
  return (
    <div>
      <Text size="sm" c="dimmed">
        {machineText.form.total}
      </Text>
      <Text fw={600}>{sayRates(type, text.shell.credits)}</Text>
      {diskNotes(type).map((note) => (
        <Text key={note} size="sm" c="dimmed">
          {note}
        </Text>
      ))}
    </div>
  );
}

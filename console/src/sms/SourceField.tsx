// From whom an SMS to a device is, as a field.
import { Field } from "../ui/forms";

export function SourceField({ value }: { value: string | undefined }) {
  return (
    <Field
      label="From"
      name="source"
      required
      maxLength={16}
      defaultValue={value}
      hint="a number, or a name of at most 11 characters"
    />
  );
}

// What an empty conversation proposes to ask, and examples of what is asked for in JSON.

export const EXAMPLE_SCHEMA = {
  type: "object",
  properties: { name: { type: "string", maxLength: 40 }, height_m: { type: "integer", maximum: 150 }, evergreen: { type: "boolean" } },
  required: ["name", "height_m", "evergreen"],
  additionalProperties: false,
};

export const EXAMPLE_TOOLS = [{
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a place",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  },
}];

const PERSON = {
  type: "object",
  properties: { name: { type: "string", maxLength: 40 }, age: { type: "integer", maximum: 150 }, city: { type: "string", maxLength: 40 } },
  required: ["name", "age", "city"],
  additionalProperties: false,
};

export const pretty = (value) => JSON.stringify(value, null, 2);

/** Of what any chat model can do. */
const OF_ALL = [
  { name: "Get acquainted", prompt: "Who are you?" },
  { name: "A story", prompt: "Tell me a little story." },
  { name: "An explanation", prompt: "Why do leaves fall in autumn?" },
];

/** Of what the model can do that comes with Bough; each with the settings that it needs. */
const OF_BUNDLED = [
  { name: "A fact", prompt: "How tall does an oak grow?" },
  { name: "A sum", prompt: "What is 36 + 47?" },
  {
    name: "JSON schema",
    prompt: "Extract name, age and city as JSON: Marta is 34 years old and lives in Porto.",
    settings: { form: "json_schema", schema: pretty(PERSON) },
  },
  { name: "A tool call", prompt: "What is the weather in Oslo?", settings: { tools: pretty(EXAMPLE_TOOLS), tool_choice: "auto" } },
  { name: "Thinking", prompt: "What is 27 + 48?", settings: { thinking: "on" } },
];

/** What may be asked of a model, as /model_info tells of it: nothing if it makes no text. */
export function examplesFor({ is_generation, model_path = "" }) {
  if (!is_generation) return [];
  return model_path.replaceAll("\\", "/").endsWith("/bough/assets/sapling") ? [...OF_ALL, ...OF_BUNDLED] : OF_ALL;
}

#pragma once

#include <string_view>

/// The words of the agreement grammar, between spaces. A noun is its singular (the plural is made by rule) or
/// singular:plural. No word but the nouns tells number: determiners are neutral, verbs are in the past.
namespace quatrain::data::lexicon {

inline constexpr std::string_view kPersons =
    "actor admiral agent analyst architect artist athlete author baker banker barber biologist bishop boy "
    "broker butcher "
    "captain carpenter cashier chemist clerk client clown coach colonel composer consultant cook cousin "
    "critic curator "
    "customer dancer daughter dealer dentist designer detective diplomat director doctor driver economist "
    "editor "
    "engineer envoy expert farmer father fisher friend gardener general girl governor guard guest guide "
    "hunter "
    "inspector inventor janitor journalist judge juror king lawyer leader librarian manager mayor mechanic "
    "mentor "
    "merchant messenger miner minister monk mother musician neighbor nephew novelist nurse officer painter "
    "parent "
    "partner passenger philosopher photographer pilot player plumber poet porter president priest prince "
    "printer professor pupil queen ranger referee reporter rival sailor scholar scientist sculptor secretary "
    "senator "
    "sergeant servant singer sister soldier son student surgeon tailor teacher tenant tourist trader trainer "
    "translator tutor uncle visitor waiter weaver witness worker writer ally deputy enemy lady spy "
    "child:children man:men woman:women person:people wife:wives thief:thieves hero:heroes nanny:nannies";

inline constexpr std::string_view kThings =
    "album anchor apple arrow badge ball banner barn barrel basket bell bench blanket boat bottle bowl box "
    "branch "
    "brick bridge brush bucket building bus button cabin cabinet cable cake camera candle cannon canoe car "
    "card "
    "carpet cart castle chain chair chart chimney church clock closet coat coin couch crate crown cup "
    "curtain "
    "cushion dam desk diamond door drawer drum engine envelope factory farm fence flag flower fountain "
    "garage "
    "garden gate gift glass glove guitar hammer harbor hat helmet hotel house island jacket jar jewel key "
    "kettle "
    "kitchen ladder lake lamp lantern letter lock machine magazine map market mask medal mill mirror "
    "monument motor "
    "museum needle notebook novel office orchard oven package page painting palace pencil piano picture "
    "pillow pipe "
    "plant plate pond portrait poster pot purse quilt radio ring river road robot rocket roof room rope "
    "saddle school "
    "shed ship shirt shop sign sofa spoon stable stage statue stone stove street suitcase sword table temple "
    "tent "
    "theater ticket tool tower toy train tree truck trumpet tunnel umbrella valley vase vehicle village "
    "violin wagon "
    "wall well wheel window battery city gallery library story "
    "shelf:shelves knife:knives leaf:leaves loaf:loaves scarf:scarves tooth:teeth potato:potatoes "
    "tomato:tomatoes "
    "cactus:cacti vertex:vertices criterion:criteria phenomenon:phenomena thesis:theses";

inline constexpr std::string_view kDeterminers = "the the the the my our your his her their";

inline constexpr std::string_view kAdjectives =
    "ancient angry bitter blue brave bright broken calm careful cheap clean clever cold curious dark dirty "
    "dull "
    "dusty elegant empty expensive famous foreign fragile friendly gentle golden gray green happy heavy "
    "hidden hungry "
    "large lazy little local lonely loud lucky modern narrow new noisy old orange pale plain polite "
    "poor pretty proud quiet rare red rich rusty sad shiny silent simple slow small strange strong sturdy "
    "tall tiny "
    "tired ugly unusual warm weak white wild wise wooden yellow young";

inline constexpr std::string_view kPrepositions =
    "near beside behind above below with from for against opposite under of around inside";

/// What persons did to something: "that the guests admired".
inline constexpr std::string_view kDeeds =
    "admired avoided blamed bought carried chased described discussed drew examined feared followed forgot "
    "found "
    "helped hated ignored inspected liked loved missed moved needed noticed painted praised remembered saw "
    "sold "
    "studied touched trusted wanted watched";

/// What a thing or a person did to something: "that blocked the doors".
inline constexpr std::string_view kEffects =
    "attracted blocked covered crushed damaged delayed destroyed faced hit joined protected reached replaced "
    "resembled "
    "supported surprised surrounded survived threatened touched";

/// What anything did by itself: "that vanished", "when the guests arrived".
inline constexpr std::string_view kEvents =
    "appeared arrived broke changed collapsed disappeared fell failed moved remained returned shone vanished "
    "waited";

inline constexpr std::string_view kConjunctions = "after although because before unless until when while";

inline constexpr std::string_view kOpenings =
    "actually apparently certainly fortunately generally however naturally obviously today usually";

inline constexpr std::string_view kAdverbs =
    "also always apparently clearly never now often probably rarely really still usually";

}  // namespace quatrain::data::lexicon
